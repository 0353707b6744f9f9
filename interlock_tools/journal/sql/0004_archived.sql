-- The nodes of the log's tree that stood in entries which have been moved to an archive. The tree is kept whole.
CREATE TABLE archived_nodes (
    leaf  INTEGER PRIMARY KEY,
    nodes BLOB NOT NULL
);

-- Finds tombstones that have been kept for long enough. The time of a tombstone is that of its effect's last entry.
CREATE INDEX entries_archived ON entries (at_ms) WHERE kind = 'archived';

-- The next one takes its place.
DROP TRIGGER entries_keep;

-- An entry is never changed, but for its private values, which may be erased; and but for the first entry of a closed
-- effect that nobody watches, which may become its tombstone.
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
WHEN NOT EXISTS (SELECT 1 FROM log_facts WHERE name = 'erasing') AND NOT coalesce(
    NEW.kind = 'archived' AND NEW.phase = 'archived' AND OLD.kind = 'proposed'
    AND NEW.id = OLD.id AND NEW.effect_id = OLD.effect_id AND NEW.name = OLD.name
    AND NEW.request_key = OLD.request_key AND NEW.decision = OLD.decision AND NEW.leaf IS OLD.leaf
    AND NEW.nodes IS OLD.nodes AND NEW.signature IS OLD.signature AND NEW.service IS OLD.service
    AND (SELECT phase FROM entries WHERE id = (SELECT max(id) FROM entries WHERE id BETWEEN OLD.id AND OLD.id | 1048575))
        IN ('committed', 'refused', 'resolved', 'replaced')
    AND NOT EXISTS (SELECT 1 FROM watched WHERE position = OLD.id >> 20), 0)
BEGIN
    SELECT RAISE(ROLLBACK, 'entries are never changed');
END;

-- A tombstone takes the place of all entries of its effect, and of what salts its private values.
CREATE TRIGGER entries_archive AFTER UPDATE OF kind ON entries WHEN NEW.kind = 'archived'
BEGIN
    DELETE FROM entries WHERE id > NEW.id AND id <= NEW.id | 1048575;
    DELETE FROM effect_secrets WHERE position = NEW.id >> 20;
END;

-- The next one takes its place.
DROP TRIGGER entries_stay;

-- An entry is never removed, but where its effect's first one is a tombstone; and so may a tombstone be, but for the
-- last effect's, after which the next one is numbered.
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
WHEN NOT EXISTS (SELECT 1 FROM entries WHERE id = (OLD.id & ~1048575) + 1 AND kind = 'archived')
  OR (OLD.id & 1048575 = 1 AND NOT EXISTS (SELECT 1 FROM entries WHERE id > OLD.id | 1048575))
BEGIN
    SELECT RAISE(ROLLBACK, 'entries are never removed');
END;

-- What an entry held of the log's tree stays.
CREATE TRIGGER entries_node AFTER DELETE ON entries WHEN OLD.leaf IS NOT NULL
BEGIN
    INSERT INTO archived_nodes (leaf, nodes) VALUES (OLD.leaf, OLD.nodes);
END;

-- The next one takes its place.
DROP TRIGGER entries_place;

-- A record does not take the place of a change of a key, or of a record that was moved to an archive.
CREATE TRIGGER entries_place BEFORE INSERT ON entries
WHEN NEW.leaf IS NOT NULL AND (
    EXISTS (SELECT 1 FROM key_changes WHERE leaf = NEW.leaf)
    OR EXISTS (SELECT 1 FROM archived_nodes WHERE leaf = NEW.leaf))
BEGIN
    SELECT RAISE(ROLLBACK, 'a place in the log is taken');
END;

-- A node of the tree is never changed.
CREATE TRIGGER archived_nodes_keep BEFORE UPDATE ON archived_nodes
BEGIN
    SELECT RAISE(ROLLBACK, 'nodes of the log are never changed');
END;

-- A node of the tree is never removed.
CREATE TRIGGER archived_nodes_stay BEFORE DELETE ON archived_nodes
BEGIN
    SELECT RAISE(ROLLBACK, 'nodes of the log are never removed');
END;
