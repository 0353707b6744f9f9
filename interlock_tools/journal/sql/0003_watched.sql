-- Effects of which somebody wants to know what becomes of them, and when to look next (UTC, milliseconds). Derived: an
-- entry that says `look_at_ms` puts its effect here, a settlement without it takes it off. Removing all of it changes no
-- decision. `worker` has it in hand until `due_ms`.
CREATE TABLE watched (
    position INTEGER PRIMARY KEY,
    due_ms   INTEGER NOT NULL,
    worker   TEXT
);

-- Finds what is due.
CREATE INDEX watched_by_due ON watched (due_ms);

-- An entry that says when to look puts its effect on the list.
CREATE TRIGGER entries_watch AFTER INSERT ON entries
WHEN NEW.kind = 'settled' OR (NEW.kind IN ('committed', 'ambiguous') AND instr(NEW.body, '"look_at_ms"') > 0)
BEGIN
    DELETE FROM watched WHERE position = NEW.id >> 20;
    INSERT INTO watched (position, due_ms)
    SELECT NEW.id >> 20, json_extract(NEW.body, '$.look_at_ms')
    WHERE json_extract(NEW.body, '$.look_at_ms') IS NOT NULL;
END;
