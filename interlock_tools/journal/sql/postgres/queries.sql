-- append: one append, as one statement and so one transaction.
SELECT interlock.append(%s, %s::text[], %s::integer[], %s::integer[], %s::text[], %s::text[], %s::integer[],
    %s::integer[], %s::text[], %s::bigint[], %s::text[], %s::integer[],
    %s::integer[], %s::text[], %s::bigint[], %s::bigint[]);

-- entries: an effect's entries in order.
SELECT e.seq, e.kind, e.at_ms, e.body FROM interlock.effects f JOIN interlock.entries e USING (position)
WHERE f.effect_id = %s ORDER BY e.seq;

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
