-- Effects, in the order in which they were first recorded. A row is written once and never changed.
CREATE TABLE effects (
    position    INTEGER PRIMARY KEY,
    effect_id   TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    request_key TEXT NOT NULL,
    decision    INTEGER NOT NULL
);

-- Entries, those of one effect side by side. `phase` is the effect's phase after the entry; `body` is JSON.
CREATE TABLE entries (
    position INTEGER NOT NULL REFERENCES effects (position),
    seq      INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    at_ms    INTEGER NOT NULL,
    body     TEXT NOT NULL,
    phase    TEXT NOT NULL,
    PRIMARY KEY (position, seq)
) WITHOUT ROWID;

-- Effects that are not closed: proposed, authorized, dispatched or ambiguous. Kept by triggers.
CREATE TABLE open_effects (
    position INTEGER PRIMARY KEY
);

-- What effects that are in flight, committed or ambiguous take of each budget, and its smallest limit ever recorded.
CREATE TABLE budgets (
    name  TEXT PRIMARY KEY,
    used  INTEGER NOT NULL,
    "limit" INTEGER
) WITHOUT ROWID;

-- Every legal step of an effect. What is not in here is refused.
CREATE TABLE transitions (
    before TEXT NOT NULL,
    kind   TEXT NOT NULL,
    after  TEXT NOT NULL,
    PRIMARY KEY (before, kind)
) WITHOUT ROWID;

-- An entry follows the last one of its effect without a gap, by a legal step, and names the phase it leads to.
CREATE TRIGGER entries_follow BEFORE INSERT ON entries
WHEN NOT EXISTS (
    SELECT 1 FROM transitions
    WHERE before = ifnull((SELECT phase FROM entries WHERE position = NEW.position ORDER BY seq DESC LIMIT 1), 'new')
      AND kind = NEW.kind AND after = NEW.phase
) OR NEW.seq <> 1 + ifnull((SELECT max(seq) FROM entries WHERE position = NEW.position), 0)
BEGIN
    SELECT RAISE(ABORT, 'an entry does not follow');
END;

-- An effect is open from its first entry on, and again when it is sent after a refusal.
CREATE TRIGGER entries_open AFTER INSERT ON entries
WHEN NEW.seq = 1 OR NEW.kind = 'dispatched'
BEGIN
    INSERT OR IGNORE INTO open_effects (position) VALUES (NEW.position);
END;

-- An effect is closed by the entry that closes it.
CREATE TRIGGER entries_close AFTER INSERT ON entries
WHEN NEW.phase IN ('committed', 'refused', 'resolved', 'replaced')
BEGIN
    DELETE FROM open_effects WHERE position = NEW.position;
END;

-- An entry is never changed.
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'entries are never changed');
END;

-- An entry is never removed.
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'entries are never removed');
END;

-- An effect's row is never changed.
CREATE TRIGGER effects_keep BEFORE UPDATE ON effects
BEGIN
    SELECT RAISE(ABORT, 'effects are never changed');
END;

-- An effect's row is never removed.
CREATE TRIGGER effects_stay BEFORE DELETE ON effects
BEGIN
    SELECT RAISE(ABORT, 'effects are never removed');
END;
