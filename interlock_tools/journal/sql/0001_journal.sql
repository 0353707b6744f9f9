-- Entries, those of one effect side by side: `id` is the effect's position times 2^20 plus the entry's number.
-- `phase` is the effect's phase after the entry, `body` is JSON. The first entry of an effect also says what it is.
CREATE TABLE entries (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    at_ms       INTEGER NOT NULL,
    phase       TEXT NOT NULL,
    body        TEXT NOT NULL,
    effect_id   TEXT,
    name        TEXT,
    request_key TEXT,
    decision    INTEGER
);

-- Finds an effect by its id, and keeps two from having the same.
CREATE UNIQUE INDEX entries_by_effect ON entries (effect_id) WHERE effect_id IS NOT NULL;

-- Effects that are open (proposed, authorized, dispatched or ambiguous), for all full blocks of 256 positions.
-- Those of the last block are found by reading it, so that an effect that goes well is never written here.
CREATE TABLE open_effects (
    position INTEGER PRIMARY KEY
);

-- What effects that are in flight, committed or ambiguous take of each budget, and its smallest limit ever recorded.
CREATE TABLE budgets (
    name     TEXT PRIMARY KEY,
    used     INTEGER NOT NULL,
    smallest INTEGER
) WITHOUT ROWID;

-- Every legal step of an effect. What is not in here is refused.
CREATE TABLE transitions (
    before TEXT NOT NULL,
    kind   TEXT NOT NULL,
    after  TEXT NOT NULL,
    PRIMARY KEY (before, kind)
) WITHOUT ROWID;

-- before -> kind -> after, as in core/states.py
INSERT INTO transitions (before, kind, after) VALUES
    ('new', 'proposed', 'proposed'),
    ('proposed', 'authorized', 'authorized'),
    ('proposed', 'approval_requested', 'proposed'),
    ('proposed', 'approved', 'proposed'),
    ('proposed', 'rejected', 'proposed'),
    ('proposed', 'refused', 'refused'),
    ('authorized', 'dispatched', 'dispatched'),
    ('authorized', 'refused', 'refused'),
    ('dispatched', 'dispatched', 'dispatched'),
    ('dispatched', 'unknown', 'dispatched'),
    ('dispatched', 'not_landed', 'dispatched'),
    ('dispatched', 'orphaned', 'dispatched'),
    ('dispatched', 'sender_lost', 'dispatched'),
    ('dispatched', 'committed', 'committed'),
    ('dispatched', 'refused', 'refused'),
    ('dispatched', 'ambiguous', 'ambiguous'),
    ('ambiguous', 'committed', 'committed'),
    ('ambiguous', 'resolved', 'resolved'),
    ('ambiguous', 'late', 'ambiguous'),
    ('committed', 'settled', 'committed'),
    ('committed', 'released', 'committed'),
    ('committed', 'late', 'committed'),
    ('refused', 'dispatched', 'dispatched'),
    ('refused', 'refused', 'refused'),
    ('refused', 'replaced', 'replaced'),
    ('refused', 'late', 'refused'),
    ('refused', 'resolved', 'resolved'),
    ('resolved', 'replaced', 'replaced'),
    ('resolved', 'settled', 'resolved'),
    ('resolved', 'released', 'resolved'),
    ('resolved', 'late', 'resolved'),
    ('replaced', 'late', 'replaced');

-- For people who read the file: one row for each effect, as it stands.
CREATE VIEW effects AS
SELECT first.id >> 20 AS position, first.effect_id, first.name, first.request_key, first.decision,
       last.id & 1048575 AS last_seq, last.phase
FROM entries AS first JOIN entries AS last
    ON last.id = (SELECT max(id) FROM entries WHERE id BETWEEN first.id AND first.id | 1048575)
WHERE first.effect_id IS NOT NULL;

-- An entry follows the last one of its effect without a gap, by a legal step, and names the phase it leads to.
-- It replaces none, whatever the statement says about conflicts.
CREATE TRIGGER entries_follow BEFORE INSERT ON entries
WHEN NEW.phase IS NOT (
    SELECT after FROM transitions
    WHERE kind = NEW.kind AND before = CASE WHEN NEW.id & 1048575 = 1 THEN 'new'
                                            ELSE (SELECT phase FROM entries WHERE id = NEW.id - 1) END
) OR (NEW.id & 1048575 = 1) <> (NEW.effect_id IS NOT NULL)
  OR EXISTS (SELECT 1 FROM entries WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ROLLBACK, 'an entry does not follow');
END;

-- The entry that closes an effect takes it off the list of open ones.
CREATE TRIGGER entries_close AFTER INSERT ON entries
WHEN NEW.phase = 'committed' OR NEW.phase = 'refused' OR NEW.phase = 'resolved' OR NEW.phase = 'replaced'
BEGIN
    DELETE FROM open_effects WHERE position = NEW.id >> 20;
END;

-- An entry is never changed.
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ROLLBACK, 'entries are never changed');
END;

-- An entry is never removed.
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ROLLBACK, 'entries are never removed');
END;
