-- heads: the last entries of some effects, for the compare-and-set.
SELECT first.effect_id, last.id, last.phase FROM entries AS first JOIN entries AS last
    ON last.id = (SELECT max(id) FROM entries WHERE id BETWEEN first.id AND first.id | 1048575)
WHERE first.effect_id IN (?, ?, ?, ?, ?, ?, ?, ?);

-- last_id: the last entry of the last effect.
SELECT max(id) FROM entries;

-- add_entries: entries; those that are not an effect's first leave the last four columns empty.
INSERT OR ROLLBACK INTO entries (id, kind, at_ms, phase, body, effect_id, name, request_key, decision)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- list_block: put the effects of a full block that are still open on the list.
INSERT OR IGNORE INTO open_effects (position)
SELECT first.id >> 20 FROM entries AS first JOIN entries AS last
    ON last.id = (SELECT max(id) FROM entries WHERE id BETWEEN first.id AND first.id | 1048575)
WHERE first.id > :block << 28 AND first.id < (:block + 1) << 28 AND first.effect_id IS NOT NULL
  AND last.phase IN ('proposed', 'authorized', 'dispatched', 'ambiguous');

-- list_again: put an effect on the list that is sent again after a refusal.
INSERT OR IGNORE INTO open_effects (position) VALUES (?);

-- entries: an effect's entries in order.
SELECT more.id & 1048575, more.kind, more.at_ms, more.body
FROM entries AS first JOIN entries AS more ON more.id BETWEEN first.id AND first.id | 1048575
WHERE first.effect_id = ? ORDER BY more.id;

-- effect: one effect as it stands.
SELECT effect_id, position, name, request_key, decision, last_seq, phase FROM effects WHERE effect_id = ?;

-- effects: all effects in order.
SELECT first.effect_id, first.id >> 20, first.name, first.request_key, first.decision, last.id & 1048575, last.phase
FROM entries AS first JOIN entries AS last
    ON last.id = (SELECT max(id) FROM entries WHERE id BETWEEN first.id AND first.id | 1048575)
WHERE first.id > (:after + 1) << 20 AND first.effect_id IS NOT NULL
ORDER BY first.id LIMIT :limit;

-- open_effects: the effects that are not closed, in order: those on the list and those of the last block.
SELECT first.effect_id, first.id >> 20, first.name, first.request_key, first.decision, last.id & 1048575, last.phase
FROM (
    SELECT id FROM (
        SELECT position << 20 | 1 AS id FROM open_effects WHERE position > :after ORDER BY position LIMIT :limit
    )
    UNION
    SELECT id FROM entries
    WHERE id > max((:after + 1) << 20, (SELECT max(id) FROM entries) >> 28 << 28) AND effect_id IS NOT NULL
) AS candidate
CROSS JOIN entries AS first ON first.id = candidate.id
CROSS JOIN entries AS last ON last.id = (SELECT max(id) FROM entries WHERE id BETWEEN first.id AND first.id | 1048575)
WHERE last.phase IN ('proposed', 'authorized', 'dispatched', 'ambiguous')
ORDER BY candidate.id LIMIT :limit;

-- open_sends: the sends of effects on the list, and all sends of the last block, up to a limit.
SELECT send.body FROM open_effects CROSS JOIN entries AS send
    ON send.id BETWEEN open_effects.position << 20 AND open_effects.position << 20 | 1048575
WHERE send.kind = 'dispatched'
UNION ALL
SELECT body FROM entries WHERE id > (SELECT max(id) FROM entries) >> 28 << 28 AND kind = 'dispatched'
LIMIT ?;

-- budget: how much of a budget is taken.
SELECT used, smallest FROM budgets WHERE name = ?;

-- set_budgets: the new figures of budgets.
INSERT INTO budgets (name, used, smallest) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET used = excluded.used, smallest = excluded.smallest;

-- reserve: take an amount if it fits; the row is left alone if it does not.
INSERT INTO budgets (name, used, smallest) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET used = used + excluded.used, smallest = min(smallest, excluded.smallest)
WHERE used + excluded.used <= min(smallest, excluded.smallest);

-- add_sealed: entries with their records; a place in the log that is taken is refused.
INSERT OR ROLLBACK INTO entries
    (id, kind, at_ms, phase, body, effect_id, name, request_key, decision, leaf, nodes, signature, service)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- add_key_change: a change of a key at the end of the log.
INSERT OR ROLLBACK INTO key_changes (leaf, nodes, signature, statement) VALUES (?, ?, ?, ?);

-- add_secret: what salts an effect's private values.
INSERT OR ROLLBACK INTO effect_secrets (position, secret, paths) VALUES (?, ?, ?);

-- log_size: how many records there are.
SELECT 1 + max(
    coalesce((SELECT max(leaf) FROM entries WHERE leaf IS NOT NULL), -1),
    coalesce((SELECT max(leaf) FROM key_changes), -1),
    coalesce((SELECT max(leaf) FROM archived_nodes), -1)
);

-- log_nodes: what one record completed.
SELECT nodes FROM entries WHERE leaf = :leaf UNION ALL SELECT nodes FROM key_changes WHERE leaf = :leaf
UNION ALL SELECT nodes FROM archived_nodes WHERE leaf = :leaf;

-- records: an effect's records in order.
SELECT more.id & 1048575, more.leaf, more.nodes, more.signature, more.service
FROM entries AS first JOIN entries AS more ON more.id BETWEEN first.id AND first.id | 1048575
WHERE first.effect_id = ? AND more.leaf IS NOT NULL ORDER BY more.id;

-- secret: what salts an effect's private values, and which those are.
SELECT s.secret, s.paths FROM entries AS first JOIN effect_secrets AS s ON s.position = first.id >> 20
WHERE first.effect_id = ?;

-- key_changes: the changes of keys in order.
SELECT leaf, nodes, signature, statement FROM key_changes ORDER BY leaf;

-- checkpoint_after: the first checkpoint that covers a record.
SELECT note FROM checkpoints WHERE size > ? ORDER BY size LIMIT 1;

-- checkpoint_witnessed: the first checkpoint that covers a record and that enough witnesses signed.
SELECT note FROM checkpoints WHERE size > ? AND witnessed = 1 ORDER BY size LIMIT 1;

-- keep_checkpoint: keep the latest checkpoint though no witness signed it, because the log moves in it.
UPDATE checkpoints SET witnessed = 2 WHERE NOT witnessed;

-- forget_checkpoints: remove checkpoints that no witness signed and that a later one replaces.
DELETE FROM checkpoints WHERE size < ? AND NOT witnessed;

-- put_checkpoint: keep a checkpoint; of two with one size the one that enough witnesses signed.
INSERT INTO checkpoints (size, note, witnessed) VALUES (?, ?, ?)
ON CONFLICT (size) DO UPDATE SET note = excluded.note, witnessed = excluded.witnessed
WHERE excluded.witnessed OR NOT checkpoints.witnessed;

-- drop_checkpoints: forget all checkpoints, where the log goes on under another name.
DELETE FROM checkpoints;

-- log_fact: one fact about the log.
SELECT value FROM log_facts WHERE name = ?;

-- put_log_fact: remember a fact about the log.
INSERT INTO log_facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- drop_log_fact: forget a fact about the log.
DELETE FROM log_facts WHERE name = ?;

-- erase_begin: allow that bodies are replaced, within this transaction.
INSERT INTO log_facts (name, value) VALUES ('erasing', 'yes');

-- erase_body: replace a body by one that hides its private values.
UPDATE entries SET body = :body
WHERE id = (SELECT (first.id & ~1048575) + :seq FROM entries AS first WHERE first.effect_id = :effect);

-- erase_secret: forget what salts an effect's private values.
DELETE FROM effect_secrets WHERE position = (SELECT first.id >> 20 FROM entries AS first WHERE first.effect_id = ?);

-- erase_end: allow it no longer.
DELETE FROM log_facts WHERE name = 'erasing';

-- claim_due: take effects whose time has come in hand, the longest due first.
UPDATE watched SET worker = ?, due_ms = ?
WHERE position IN (SELECT position FROM watched WHERE due_ms <= ? ORDER BY due_ms, position LIMIT ?);

-- claimed: the effects that a worker has in hand.
SELECT first.effect_id, first.id >> 20, first.name, first.request_key, first.decision, last.id & 1048575, last.phase
FROM watched
CROSS JOIN entries AS first ON first.id = watched.position << 20 | 1
CROSS JOIN entries AS last ON last.id = (SELECT max(id) FROM entries WHERE id BETWEEN first.id AND first.id | 1048575)
WHERE watched.worker = ? ORDER BY watched.position;

-- look_at: when to look at an effect next.
INSERT INTO watched (position, due_ms) SELECT id >> 20, ? FROM entries WHERE effect_id = ? AND kind <> 'archived'
ON CONFLICT (position) DO UPDATE SET due_ms = excluded.due_ms, worker = NULL;

-- look_no_more: take an effect off the list of those to look at.
DELETE FROM watched WHERE position = (SELECT id >> 20 FROM entries WHERE effect_id = ?);

-- next_look: when the first effect is due.
SELECT min(due_ms), count(*) FROM watched;

-- watched: the effects that are looked at, in order.
SELECT first.effect_id, first.id >> 20, first.name, first.request_key, first.decision, last.id & 1048575, last.phase
FROM watched
CROSS JOIN entries AS first ON first.id = watched.position << 20 | 1
CROSS JOIN entries AS last ON last.id = (SELECT max(id) FROM entries WHERE id BETWEEN first.id AND first.id | 1048575)
WHERE watched.position > :after ORDER BY watched.position LIMIT :limit;

-- archive: put a tombstone in a finished effect's place, unless it has changed, is watched or its next decision stays.
UPDATE entries SET kind = 'archived', phase = 'archived', at_ms = :ended, body = :tombstone
WHERE id = :position << 20 | 1 AND kind = 'proposed'
  AND NOT EXISTS (SELECT 1 FROM entries WHERE id = (:position << 20 | :seq) + 1)
  AND (SELECT phase FROM entries WHERE id = :position << 20 | :seq)
      IN ('committed', 'refused', 'resolved', 'replaced')
  AND NOT EXISTS (SELECT 1 FROM watched WHERE position = :position)
  AND (:next IS NULL OR EXISTS (SELECT 1 FROM entries WHERE id = :next << 20 | 1 AND kind = 'archived'));

-- forget: remove tombstones of effects that ended long ago, but for the last effect's.
DELETE FROM entries WHERE id IN (
    SELECT id FROM entries WHERE kind = 'archived' AND at_ms < ? AND id < (SELECT max(id) FROM entries) >> 20 << 20
    ORDER BY at_ms LIMIT ?
);

-- to_forget: how many tombstones that would remove.
SELECT count(*) FROM entries
WHERE kind = 'archived' AND at_ms < ? AND id < (SELECT max(id) FROM entries) >> 20 << 20;
