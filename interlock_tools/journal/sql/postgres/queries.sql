-- append: one append, as one statement and so one transaction.
SELECT interlock.append(%s, %s::text[], %s::integer[], %s::integer[], %s::text[], %s::text[], %s::integer[],
    %s::integer[], %s::text[], %s::bigint[], %s::text[], %s::integer[],
    %s::integer[], %s::text[], %s::bigint[], %s::bigint[]);

-- entries: an effect's entries in order; its tombstone alone, if it was archived.
SELECT e.seq, e.kind, e.at_ms, coalesce(e.body, f.tombstone)
FROM interlock.effects f LEFT JOIN interlock.entries e USING (position) WHERE f.effect_id = %s ORDER BY e.seq;

-- effects_by_id: some effects as they stand.
SELECT effect_id, position, name, request_key, decision, last_seq, phase FROM interlock.effects
WHERE effect_id = ANY (%s::text[]) ORDER BY decision;

-- open_effects: the effects that are not closed, in order. The phases are those of the index.
SELECT effect_id, position, name, request_key, decision, last_seq, phase FROM interlock.effects
WHERE phase IN ('proposed', 'authorized', 'dispatched', 'ambiguous') AND position > %s ORDER BY position LIMIT %s;

-- effects: all effects in order.
SELECT effect_id, position, name, request_key, decision, last_seq, phase FROM interlock.effects
WHERE position > %s ORDER BY position LIMIT %s;

-- budget: how much of a budget is taken.
SELECT used, smallest FROM interlock.budgets WHERE name = %s;

-- open_sends: the sends of open effects, up to a limit.
SELECT e.body FROM interlock.effects f JOIN interlock.entries e USING (position)
WHERE f.phase IN ('proposed', 'authorized', 'dispatched', 'ambiguous') AND e.kind = 'dispatched' LIMIT %s;

-- open_session: a process appears. Also tidies up after those that went long ago.
WITH gone AS (
    DELETE FROM interlock.sessions WHERE renewed_at < clock_timestamp() - interval '30 days'
    AND (state <> 'open' OR mode <> 'lock' OR pg_try_advisory_xact_lock_shared(lock_key))
), longest AS (
    UPDATE interlock.journal SET longest_lease_ms = %(lease_ms)s WHERE longest_lease_ms < %(lease_ms)s
)
INSERT INTO interlock.sessions (name, host, machine, pid, boot, inode, started_ms, mode, lock_key, lease_ms)
VALUES (%(name)s, %(host)s, %(machine)s, %(pid)s, %(boot)s, %(inode)s, %(started_ms)s, %(mode)s, %(lock_key)s,
    %(lease_ms)s);

-- renew: renew a session's lease.
SELECT interlock.renew(%s);

-- sight: look at a session of another host.
SELECT state, mode, lease_ms, host, pid, started_ms, machine, inode FROM interlock.sight(%s);

-- session: a session's row, as it is.
SELECT state, mode, lease_ms, host, pid, started_ms, machine, inode FROM interlock.sessions WHERE name = %s;

-- end_session: a process leaves, with no send running.
UPDATE interlock.sessions SET state = 'ended' WHERE name = %s AND state = 'open';

-- longest_lease: what a session that nobody knows may have been given.
SELECT longest_lease_ms FROM interlock.journal;

-- append_sealed: one append with the records of its entries, as one statement and so one transaction.
SELECT interlock.append_sealed(%s, %s::text[], %s::integer[], %s::integer[], %s::text[], %s::text[], %s::integer[],
    %s::integer[], %s::text[], %s::bigint[], %s::text[], %s::integer[],
    %s::integer[], %s::text[], %s::bigint[], %s::bigint[],
    %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[]);

-- lock_log: nobody else gives places in the log until this transaction ends.
LOCK TABLE interlock.key_changes IN SHARE ROW EXCLUSIVE MODE;

-- log_size: how many records have a place in the log.
SELECT 1 + greatest(
    (SELECT coalesce(max(leaf), -1) FROM interlock.records), (SELECT coalesce(max(leaf), -1) FROM interlock.key_changes)
);

-- to_place: some records that have no place in the log yet; those of an effect in order.
SELECT position, seq, hash FROM interlock.records WHERE leaf IS NULL ORDER BY position, seq LIMIT %s;

-- place: give records their places.
UPDATE interlock.records r SET leaf = n.leaf, nodes = decode(n.nodes, 'hex')
FROM unnest(%s::bigint[], %s::integer[], %s::bigint[], %s::text[]) AS n (position, seq, leaf, nodes)
WHERE r.position = n.position AND r.seq = n.seq;

-- log_nodes: what one record completed.
SELECT nodes FROM interlock.records WHERE leaf = %(leaf)s
UNION ALL SELECT nodes FROM interlock.key_changes WHERE leaf = %(leaf)s;

-- add_key_change: a change of a key at the end of the log.
INSERT INTO interlock.key_changes (leaf, nodes, signature, statement) VALUES (%s, %s, %s, %s);

-- records: an effect's records in order.
SELECT r.seq, r.leaf, r.hash, r.signature, r.service FROM interlock.effects f JOIN interlock.records r USING (position)
WHERE f.effect_id = %s ORDER BY r.seq;

-- secret: what salts an effect's private values, and which those are.
SELECT s.secret, s.paths FROM interlock.effects f JOIN interlock.effect_secrets s USING (position)
WHERE f.effect_id = %s;

-- key_changes: the changes of keys in order.
SELECT leaf, nodes, signature, statement FROM interlock.key_changes ORDER BY leaf;

-- checkpoint_after: the first checkpoint that covers a record.
SELECT note FROM interlock.checkpoints WHERE size > %s ORDER BY size LIMIT 1;

-- checkpoint_witnessed: the first checkpoint that covers a record and that enough witnesses signed.
SELECT note FROM interlock.checkpoints WHERE size > %s AND witnessed = 1 ORDER BY size LIMIT 1;

-- keep_checkpoint: keep the latest checkpoint though no witness signed it, because the log moves in it.
UPDATE interlock.checkpoints SET witnessed = 2 WHERE witnessed = 0;

-- forget_checkpoints: remove checkpoints that no witness signed and that a later one replaces.
DELETE FROM interlock.checkpoints WHERE size < %s AND witnessed = 0;

-- put_checkpoint: keep a checkpoint; of two with one size the one that enough witnesses signed.
INSERT INTO interlock.checkpoints AS c (size, note, witnessed) VALUES (%s, %s, %s)
ON CONFLICT (size) DO UPDATE SET note = excluded.note, witnessed = excluded.witnessed
WHERE excluded.witnessed > 0 OR c.witnessed = 0;

-- drop_checkpoints: forget all checkpoints, where the log goes on under another name.
DELETE FROM interlock.checkpoints;

-- log_fact: one fact about the log.
SELECT value FROM interlock.log_facts WHERE name = %s;

-- put_log_fact: remember a fact about the log.
INSERT INTO interlock.log_facts (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- drop_log_fact: forget a fact about the log.
DELETE FROM interlock.log_facts WHERE name = %s;

-- erase: hide an effect's private values for ever.
SELECT interlock.erase(%s, %s::integer[], %s::text[]);

-- claim_due: take effects whose time has come in hand, the longest due first.
WITH chosen AS (
    SELECT position FROM interlock.watched WHERE due_ms <= %(now_ms)s ORDER BY due_ms, position LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE interlock.watched AS w SET worker = %(worker)s, due_ms = %(until_ms)s FROM chosen
    WHERE w.position = chosen.position RETURNING w.position
)
SELECT effect_id, position, name, request_key, decision, last_seq, phase
FROM interlock.effects JOIN taken USING (position) ORDER BY position;

-- look_at: when to look at an effect next.
INSERT INTO interlock.watched AS w (position, due_ms)
SELECT position, %s FROM interlock.effects WHERE effect_id = %s AND phase <> 'archived'
ON CONFLICT (position) DO UPDATE SET due_ms = excluded.due_ms, worker = NULL RETURNING position;

-- look_no_more: take an effect off the list of those to look at.
DELETE FROM interlock.watched WHERE position = (SELECT position FROM interlock.effects WHERE effect_id = %s)
RETURNING position;

-- next_look: when the first effect is due, and how many are on the list.
SELECT min(due_ms), count(*) FROM interlock.watched;

-- watched: the effects that are looked at, in order.
SELECT effect_id, position, name, request_key, decision, last_seq, phase
FROM interlock.effects JOIN interlock.watched USING (position) WHERE position > %s ORDER BY position LIMIT %s;

-- archive: replace finished effects by their tombstones.
SELECT interlock.archive(%s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::text[]);

-- forget: remove tombstones of effects that ended long ago.
DELETE FROM interlock.effects WHERE position IN (
    SELECT position FROM interlock.effects WHERE phase = 'archived' AND ended_ms < %s ORDER BY ended_ms LIMIT %s
);

-- to_forget: how many tombstones that would remove.
SELECT count(*) FROM interlock.effects WHERE phase = 'archived' AND ended_ms < %s;
