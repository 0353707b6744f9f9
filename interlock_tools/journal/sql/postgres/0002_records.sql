-- Records of entries that were written with signing on, in the transaction of their entries. `hash` is the record's,
-- `signature` the key's id (4 bytes) and its signature (64 bytes), empty where the last one of the same append covers
-- it. What was signed follows from the entry, and from `service` (JSON, of an effect's first record).
-- `leaf` is its place in the log and `nodes` the hashes of the subtrees that it completes, smallest first. They are
-- given later, before the next checkpoint, so that appends need not wait for each other.
CREATE TABLE interlock.records (
    position  bigint NOT NULL,
    seq       integer NOT NULL,
    hash      bytea NOT NULL,
    signature bytea NOT NULL,
    service   text,
    leaf      bigint UNIQUE,
    nodes     bytea,
    PRIMARY KEY (position, seq)
);

-- Records that have no place in the log yet.
CREATE INDEX records_to_place ON interlock.records (position, seq) WHERE leaf IS NULL;

-- Changes of keys. They stand in the same log as the records of entries; `statement` is what was signed.
CREATE TABLE interlock.key_changes (
    leaf      bigint PRIMARY KEY,
    nodes     bytea NOT NULL,
    signature bytea NOT NULL,
    statement text NOT NULL
);

-- What salts the private values of an effect, and which those are (a JSON list of paths).
CREATE TABLE interlock.effect_secrets (
    position bigint PRIMARY KEY,
    secret   bytea NOT NULL,
    paths    text NOT NULL
);

-- Signed checkpoints of the log, with the cosignatures that they have. `witnessed` is 1 where enough witnesses signed,
-- 2 where it is kept because the log moves to another key in it. Others are removed when a later one is there.
CREATE TABLE interlock.checkpoints (
    size      bigint PRIMARY KEY,
    note      text NOT NULL,
    witnessed integer NOT NULL
);

-- What is known of the log as a whole: `origin`, its name, and `missing`, why nothing may be sent.
CREATE TABLE interlock.log_facts (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

-- A record is never changed, but for the place in the log that it is given once.
CREATE FUNCTION interlock.keep_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.leaf IS NULL AND NEW.leaf IS NOT NULL
        AND (NEW.position, NEW.seq, NEW.hash, NEW.signature, NEW.service)
            IS NOT DISTINCT FROM (OLD.position, OLD.seq, OLD.hash, OLD.signature, OLD.service) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'records are never changed';
END $$;
CREATE TRIGGER records_keep BEFORE UPDATE OR DELETE ON interlock.records
    FOR EACH ROW EXECUTE FUNCTION interlock.keep_record();

-- A change of a key is never changed.
CREATE FUNCTION interlock.keep_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'changes of keys are never changed';
END $$;
CREATE TRIGGER key_changes_keep BEFORE UPDATE OR DELETE ON interlock.key_changes
    FOR EACH ROW EXECUTE FUNCTION interlock.keep_key_change();

-- One append with the records of its entries: as `append`, whole or not at all. Hashes and signatures are in hex.
CREATE FUNCTION interlock.append_sealed(
    token_ bigint,
    effect_ids text[], expected integer[], counts integer[], names text[], request_keys text[], decisions integer[],
    seqs integer[], kinds text[], times bigint[], bodies text[],
    freeing integer[],
    item_entries integer[], item_budgets text[], item_amounts bigint[], item_limits bigint[],
    owners text[], hashes text[], signatures text[], services text[], secrets text[], paths_ text[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    answer := interlock.append(
        token_, effect_ids, expected, counts, names, request_keys, decisions, seqs, kinds, times, bodies, freeing,
        item_entries, item_budgets, item_amounts, item_limits);
    IF answer = 'appended' THEN
        INSERT INTO interlock.records (position, seq, hash, signature, service)
        SELECT f.position, n.seq, decode(n.hash, 'hex'), decode(n.signature, 'hex'), n.service
        FROM unnest(owners, seqs, hashes, signatures, services) AS n (owner, seq, hash, signature, service)
        JOIN interlock.effects f ON f.effect_id = n.owner;
        INSERT INTO interlock.effect_secrets (position, secret, paths)
        SELECT f.position, decode(n.secret, 'hex'), n.paths
        FROM unnest(effect_ids, secrets, paths_) AS n (owner, secret, paths)
        JOIN interlock.effects f ON f.effect_id = n.owner WHERE n.secret IS NOT NULL;
    END IF;
    RETURN answer;
END $$;

-- An entry is never changed and never removed, but for its private values, which may be erased (`erase`).
CREATE OR REPLACE FUNCTION interlock.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'entries' AND current_setting('interlock.erasing', true) = 'yes' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% of the journal are never changed and never removed', TG_TABLE_NAME USING ERRCODE = 'IL005';
END $$;

-- Replace bodies of an effect's entries by ones that hide its private values, and forget what salts those.
CREATE FUNCTION interlock.erase(effect_ text, seqs integer[], bodies text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    here bigint;
BEGIN
    SELECT position INTO here FROM interlock.effects WHERE effect_id = effect_;
    PERFORM set_config('interlock.erasing', 'yes', true);
    UPDATE interlock.entries e SET body = n.body FROM unnest(seqs, bodies) AS n (seq, body)
    WHERE e.position = here AND e.seq = n.seq;
    PERFORM set_config('interlock.erasing', 'no', true);
    DELETE FROM interlock.effect_secrets WHERE position = here;
END $$;
