-- The record of an entry that was written with signing on: its place in the log.
ALTER TABLE entries ADD COLUMN leaf INTEGER;

-- Its hash (32 bytes), and those of the complete subtrees of the log that it completes, smallest first.
ALTER TABLE entries ADD COLUMN nodes BLOB;

-- The key's id (4 bytes) and its signature (64 bytes); empty where that of the last one of the same commit covers it.
-- What was signed follows from the entry, and from `service`.
ALTER TABLE entries ADD COLUMN signature BLOB;

-- Whom the effect is done at, for its first record: JSON.
ALTER TABLE entries ADD COLUMN service TEXT;

-- Finds what is at a place of the log, and keeps two records from having the same.
CREATE UNIQUE INDEX entries_by_leaf ON entries (leaf) WHERE leaf IS NOT NULL;

-- Changes of keys. They stand in the same log as the records of entries; `statement` is what was signed.
CREATE TABLE key_changes (
    leaf      INTEGER PRIMARY KEY,
    nodes     BLOB NOT NULL,
    signature BLOB NOT NULL,
    statement TEXT NOT NULL
);

-- What salts the private values of an effect, and which those are (a JSON list of paths).
CREATE TABLE effect_secrets (
    position INTEGER PRIMARY KEY,
    secret   BLOB NOT NULL,
    paths    TEXT NOT NULL
);

-- Signed checkpoints of the log, with the cosignatures that they have. `witnessed` is 1 where enough witnesses signed,
-- 2 where it is kept because the log moves to another key in it. Others are removed when a later one is there.
CREATE TABLE checkpoints (
    size      INTEGER PRIMARY KEY,
    note      TEXT NOT NULL,
    witnessed INTEGER NOT NULL
);

-- What is known of the log as a whole: `origin`, its name, and `missing`, why nothing may be sent.
CREATE TABLE log_facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- A record does not take the place of a change of a key.
CREATE TRIGGER entries_place BEFORE INSERT ON entries
WHEN NEW.leaf IS NOT NULL AND EXISTS (SELECT 1 FROM key_changes WHERE leaf = NEW.leaf)
BEGIN
    SELECT RAISE(ROLLBACK, 'a place in the log is taken');
END;

-- A change of a key is never changed.
CREATE TRIGGER key_changes_keep BEFORE UPDATE ON key_changes
BEGIN
    SELECT RAISE(ROLLBACK, 'changes of keys are never changed');
END;

-- A change of a key is never removed.
CREATE TRIGGER key_changes_stay BEFORE DELETE ON key_changes
BEGIN
    SELECT RAISE(ROLLBACK, 'changes of keys are never removed');
END;

-- The next one takes its place.
DROP TRIGGER entries_keep;

-- An entry is never changed, but for its private values, which may be erased.
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
WHEN NOT EXISTS (SELECT 1 FROM log_facts WHERE name = 'erasing')
BEGIN
    SELECT RAISE(ROLLBACK, 'entries are never changed');
END;
