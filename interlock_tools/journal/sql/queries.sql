-- begin: take the write lock now, so that nothing that was read can change before the commit.
BEGIN IMMEDIATE;

-- commit: make it durable.
COMMIT;

-- rollback: nothing happened.
ROLLBACK;

-- head: where an effect stands, for the compare-and-set.
SELECT effects.position, entries.seq, entries.phase FROM effects JOIN entries USING (position)
WHERE effects.effect_id = ? ORDER BY entries.seq DESC LIMIT 1;

-- add_effect: the row of a new effect.
INSERT INTO effects (effect_id, name, request_key, decision) VALUES (?, ?, ?, ?);

-- add_entry: one entry; the row of values is repeated to write several at once.
INSERT INTO entries (position, seq, kind, at_ms, body, phase) VALUES (?, ?, ?, ?, ?, ?);

-- entries: an effect's entries in order.
SELECT entries.seq, entries.kind, entries.at_ms, entries.body FROM effects JOIN entries USING (position)
WHERE effects.effect_id = ? ORDER BY entries.seq;

-- effect: one effect with its last entry.
SELECT effects.effect_id, effects.position, effects.name, effects.request_key, effects.decision,
       entries.seq, entries.phase
FROM effects JOIN entries USING (position)
WHERE effects.effect_id = ? ORDER BY entries.seq DESC LIMIT 1;

-- effects: all effects in order, each with its last entry.
SELECT effects.effect_id, effects.position, effects.name, effects.request_key, effects.decision,
       entries.seq, entries.phase
FROM effects JOIN entries ON entries.position = effects.position
    AND entries.seq = (SELECT max(seq) FROM entries AS last WHERE last.position = effects.position)
WHERE effects.position > ? ORDER BY effects.position LIMIT ?;

-- open_effects: the effects that are not closed, in order; never reads a closed one.
SELECT effects.effect_id, effects.position, effects.name, effects.request_key, effects.decision,
       entries.seq, entries.phase
FROM open_effects CROSS JOIN effects ON effects.position = open_effects.position
    CROSS JOIN entries ON entries.position = effects.position
    AND entries.seq = (SELECT max(seq) FROM entries AS last WHERE last.position = effects.position)
WHERE open_effects.position > ? ORDER BY open_effects.position LIMIT ?;

-- budget: how much of a budget is taken.
SELECT used, "limit" FROM budgets WHERE name = ?;

-- set_budget: the new figures of a budget.
INSERT INTO budgets (name, used, "limit") VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET used = excluded.used, "limit" = excluded."limit";

-- free_budget: give back what an effect held.
UPDATE budgets SET used = used - ? WHERE name = ?;

-- open_sends: the bodies of the sends of open effects, to tell which sessions are still referred to.
SELECT entries.body FROM open_effects CROSS JOIN entries ON entries.position = open_effects.position
WHERE entries.kind = 'dispatched';
