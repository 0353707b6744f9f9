-- Records of entries that were written with signing on, and of changes of keys, in the order of the log. `nodes` is the
-- record's hash (32 bytes) and those of the complete subtrees that it completes, smallest first. `signature` is the
-- key's id (4 bytes) and its signature (64 bytes). What was signed follows from the entry, but for `service` (of an
-- effect's first record) and `statement` (of a change of a key).
CREATE TABLE records (
    leaf      INTEGER PRIMARY KEY,
    entry_id  INTEGER UNIQUE,
    nodes     BLOB NOT NULL,
    signature BLOB NOT NULL,
    service   TEXT,
    statement TEXT
);

-- What salts the private values of an effect, and which those are (a JSON list of paths).
CREATE TABLE effect_secrets (
    position INTEGER PRIMARY KEY,
    secret   BLOB NOT NULL,
    paths    TEXT NOT NULL
);

-- Signed checkpoints of the log, with the cosignatures that they have. Those that no witness signed are not kept.
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

-- A record is never changed.
CREATE TRIGGER records_keep BEFORE UPDATE ON records
BEGIN
    SELECT RAISE(ROLLBACK, 'records are never changed');
END;

-- A record is never removed.
CREATE TRIGGER records_stay BEFORE DELETE ON records
BEGIN
    SELECT RAISE(ROLLBACK, 'records are never removed');
END;
