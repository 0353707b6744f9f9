-- Effects of which somebody wants to know what becomes of them, and when to look next (UTC, milliseconds). Derived: an
-- entry that says `look_at_ms` puts its effect here, a settlement without it takes it off. Removing all of it changes no
-- decision. `worker` has it in hand until `due_ms`.
CREATE TABLE interlock.watched (
    position bigint PRIMARY KEY,
    due_ms   bigint NOT NULL,
    worker   text
);

-- Finds what is due.
CREATE INDEX watched_by_due ON interlock.watched (due_ms);

-- An entry that says when to look puts its effect on the list.
CREATE FUNCTION interlock.watch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    due_ bigint := (NEW.body::jsonb ->> 'look_at_ms')::bigint;
BEGIN
    IF due_ IS NOT NULL THEN
        INSERT INTO interlock.watched (position, due_ms) VALUES (NEW.position, due_)
        ON CONFLICT (position) DO UPDATE SET due_ms = due_, worker = NULL;
    ELSE
        DELETE FROM interlock.watched WHERE position = NEW.position;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER entries_watch AFTER INSERT ON interlock.entries FOR EACH ROW
    WHEN (NEW.kind = 'settled' OR (NEW.kind IN ('committed', 'ambiguous') AND NEW.body LIKE '%"look_at_ms"%'))
    EXECUTE FUNCTION interlock.watch();
