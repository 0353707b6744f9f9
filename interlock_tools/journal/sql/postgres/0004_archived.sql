-- Effects that were moved to an archive have the phase 'archived' and no entries. `tombstone` (JSON) says what became
-- of them, `ended_ms` is the time of their last entry. Their records stay: they are leaves of the log.
ALTER TABLE interlock.effects ADD COLUMN tombstone text, ADD COLUMN ended_ms bigint;

-- Finds tombstones that have been kept for long enough.
CREATE INDEX effects_archived ON interlock.effects (ended_ms) WHERE phase = 'archived';

-- Only a closed effect that nobody watches is archived, for good; only an archived one is removed.
CREATE FUNCTION interlock.keep_effect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.phase = 'archived' THEN
            RETURN OLD;
        END IF;
    ELSIF OLD.phase IN ('committed', 'refused', 'resolved', 'replaced') AND NEW.phase = 'archived'
        AND NEW.tombstone IS NOT NULL AND NEW.ended_ms IS NOT NULL
        AND (NEW.position, NEW.effect_id, NEW.name, NEW.request_key, NEW.decision)
            IS NOT DISTINCT FROM (OLD.position, OLD.effect_id, OLD.name, OLD.request_key, OLD.decision)
        AND NOT EXISTS (SELECT 1 FROM interlock.watched w WHERE w.position = OLD.position) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'effects of the journal are never changed or removed but by archiving closed ones' USING ERRCODE = 'IL005';
END $$;
CREATE TRIGGER effects_archive BEFORE UPDATE ON interlock.effects FOR EACH ROW
    WHEN (NEW.phase = 'archived' OR OLD.phase = 'archived') EXECUTE FUNCTION interlock.keep_effect();
DROP TRIGGER effects_stay ON interlock.effects;
CREATE TRIGGER effects_stay BEFORE TRUNCATE ON interlock.effects
    FOR EACH STATEMENT EXECUTE FUNCTION interlock.keep();
CREATE TRIGGER effects_go BEFORE DELETE ON interlock.effects
    FOR EACH ROW EXECUTE FUNCTION interlock.keep_effect();

-- Only entries of an archived effect are removed.
CREATE FUNCTION interlock.keep_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM interlock.effects f WHERE f.position = OLD.position AND f.phase = 'archived') THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'entries of the journal are never changed, or removed before their effect is archived' USING ERRCODE = 'IL005';
END $$;
DROP TRIGGER entries_keep ON interlock.entries;
CREATE TRIGGER entries_keep BEFORE UPDATE OR TRUNCATE ON interlock.entries
    FOR EACH STATEMENT EXECUTE FUNCTION interlock.keep();
CREATE TRIGGER entries_stay BEFORE DELETE ON interlock.entries
    FOR EACH ROW EXECUTE FUNCTION interlock.keep_entry();

-- Replace finished effects by their tombstones, in order. Left alone are those that have a newer entry or are watched,
-- and those whose next decision (by its position) has not been archived. What they take of a budget stays taken.
CREATE FUNCTION interlock.archive(
    positions bigint[], seqs integer[], times bigint[], nexts bigint[], tombstones text[]
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    done integer := 0;
BEGIN
    FOR i IN 1 .. cardinality(positions) LOOP
        UPDATE interlock.effects f
        SET phase = 'archived', last_seq = 0, ended_ms = times[i], tombstone = tombstones[i]
        WHERE f.position = positions[i] AND f.last_seq = seqs[i]
          AND f.phase IN ('committed', 'refused', 'resolved', 'replaced')
          AND NOT EXISTS (SELECT 1 FROM interlock.watched w WHERE w.position = positions[i])
          AND (nexts[i] IS NULL OR EXISTS (
              SELECT 1 FROM interlock.effects n WHERE n.position = nexts[i] AND n.phase = 'archived'));
        IF FOUND THEN
            DELETE FROM interlock.entries WHERE position = positions[i];
            DELETE FROM interlock.effect_secrets WHERE position = positions[i];
            DELETE FROM interlock.holds WHERE position = positions[i];
            done := done + 1;
        END IF;
    END LOOP;
    RETURN done;
END $$;
