-- Everything lies in one schema, called `interlock` here; the name is replaced if the URL names another.

-- What this journal is: its format is the number of migrations that it went through. `id` names it for as long as it
-- exists. `longest_lease_ms` is the longest lease that any session was ever given.
CREATE TABLE interlock.journal (
    one              boolean PRIMARY KEY DEFAULT true CHECK (one),
    format           integer NOT NULL,
    id               uuid NOT NULL DEFAULT gen_random_uuid(),
    longest_lease_ms bigint NOT NULL DEFAULT 0
);

-- Every legal step of an effect. What is not in here is refused.
CREATE TABLE interlock.transitions (
    before text NOT NULL,
    kind   text NOT NULL,
    after  text NOT NULL,
    PRIMARY KEY (before, kind)
);

-- before -> kind -> after, as in core/states.py
INSERT INTO interlock.transitions (before, kind, after) VALUES
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

-- Numbers the effects.
CREATE SEQUENCE interlock.positions;

-- One row for each effect, as it stands: derived from the entries, for finding effects and for the compare-and-set.
-- `name` and `request_key` are spelled as inside JSON text, because a NUL cannot be kept otherwise.
CREATE TABLE interlock.effects (
    position    bigint PRIMARY KEY,
    effect_id   text COLLATE "C" NOT NULL UNIQUE,
    name        text NOT NULL,
    request_key text NOT NULL,
    decision    integer NOT NULL,
    last_seq    integer NOT NULL,
    phase       text NOT NULL
) WITH (fillfactor = 80);

-- Effects that are open, so that recovery never reads the finished ones.
CREATE INDEX open_effects ON interlock.effects (position)
    WHERE phase IN ('proposed', 'authorized', 'dispatched', 'ambiguous');

-- Entries; `body` is JSON, `phase` is the effect's phase after the entry, `token` is that of the append it came with.
CREATE TABLE interlock.entries (
    position bigint NOT NULL,
    seq      integer NOT NULL,
    kind     text NOT NULL,
    at_ms    bigint NOT NULL,
    phase    text NOT NULL,
    body     text NOT NULL,
    token    bigint NOT NULL,
    PRIMARY KEY (position, seq)
);

-- What effects that are in flight, committed or ambiguous take of each budget, and its smallest limit ever recorded.
CREATE TABLE interlock.budgets (
    name     text COLLATE "C" PRIMARY KEY,
    used     bigint NOT NULL CHECK (used >= 0),
    smallest bigint
) WITH (fillfactor = 50);

-- What each effect holds of each budget now.
CREATE TABLE interlock.holds (
    position bigint NOT NULL,
    budget   text COLLATE "C" NOT NULL,
    amount   bigint NOT NULL
);
CREATE INDEX holds_by_effect ON interlock.holds (position);

-- Processes that are or were present. `mode` is lock or heartbeats. `state` is open, ended (it said so itself, with no
-- send running) or lost, and never goes back to open.
CREATE TABLE interlock.sessions (
    name       text COLLATE "C" PRIMARY KEY,
    host       text NOT NULL,
    machine    text NOT NULL,
    pid        integer NOT NULL,
    boot       text NOT NULL,
    inode      text NOT NULL,
    started_ms bigint NOT NULL,
    mode       text NOT NULL,
    lock_key   bigint NOT NULL,
    lease_ms   bigint NOT NULL,
    renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state      text NOT NULL DEFAULT 'open'
);

-- An entry follows the last one of its effect without a gap and by a legal step.
CREATE FUNCTION interlock.follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before_it text := 'new';
BEGIN
    IF NEW.seq > 1 THEN
        SELECT e.phase INTO before_it FROM interlock.entries e WHERE e.position = NEW.position AND e.seq = NEW.seq - 1;
    END IF;
    SELECT t.after INTO NEW.phase FROM interlock.transitions t WHERE t.before = before_it AND t.kind = NEW.kind;
    IF NEW.phase IS NULL OR NEW.seq < 1 THEN
        RAISE EXCEPTION 'an entry does not follow' USING ERRCODE = 'IL003',
            DETAIL = json_build_object('phase', before_it, 'kind', NEW.kind)::text;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER entries_follow BEFORE INSERT ON interlock.entries FOR EACH ROW EXECUTE FUNCTION interlock.follow();

-- An entry is never changed and never removed, and neither are the steps that are legal.
CREATE FUNCTION interlock.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of the journal are never changed and never removed', TG_TABLE_NAME USING ERRCODE = 'IL005';
END $$;
CREATE TRIGGER entries_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON interlock.entries
    FOR EACH STATEMENT EXECUTE FUNCTION interlock.keep();
CREATE TRIGGER transitions_keep BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON interlock.transitions
    FOR EACH STATEMENT EXECUTE FUNCTION interlock.keep();
CREATE TRIGGER effects_stay BEFORE DELETE OR TRUNCATE ON interlock.effects
    FOR EACH STATEMENT EXECUTE FUNCTION interlock.keep();

-- The phase after some entries.
CREATE FUNCTION interlock.phase_after(before_them text, kinds_ text[]) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    here text := before_them;
    next_one text;
    kind_ text;
BEGIN
    FOREACH kind_ IN ARRAY kinds_ LOOP
        SELECT t.after INTO next_one FROM interlock.transitions t WHERE t.before = here AND t.kind = kind_;
        IF next_one IS NULL THEN
            RAISE EXCEPTION 'an entry does not follow' USING ERRCODE = 'IL003',
                DETAIL = json_build_object('phase', here, 'kind', kind_)::text;
        END IF;
        here := next_one;
    END LOOP;
    RETURN here;
END $$;

-- Take an amount of a budget for an effect if it fits, or refuse.
CREATE FUNCTION interlock.reserve(position_ bigint, budget_ text, amount_ bigint, limit_ bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    used_ bigint;
    smallest_ bigint;
BEGIN
    IF limit_ IS NULL OR amount_ <= limit_ THEN
        INSERT INTO interlock.budgets AS b (name, used, smallest) VALUES (budget_, amount_, limit_)
        ON CONFLICT (name) DO UPDATE SET used = b.used + amount_, smallest = least(b.smallest, limit_)
        WHERE coalesce(b.used + amount_ <= least(b.smallest, limit_), true);
        IF FOUND THEN
            INSERT INTO interlock.holds (position, budget, amount) VALUES (position_, budget_, amount_);
            RETURN;
        END IF;
    END IF;
    SELECT used, smallest INTO used_, smallest_ FROM interlock.budgets WHERE name = budget_;
    RAISE EXCEPTION 'over budget' USING ERRCODE = 'IL002', DETAIL = json_build_object(
        'budget', budget_, 'amount', amount_, 'used', coalesce(used_, 0), 'limit', least(smallest_, limit_))::text;
END $$;

-- Give back what an effect holds.
CREATE FUNCTION interlock.release(position_ bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held record;
BEGIN
    FOR held IN SELECT budget, amount FROM interlock.holds WHERE position = position_ ORDER BY budget LOOP
        UPDATE interlock.budgets SET used = used - held.amount WHERE name = held.budget;
    END LOOP;
    DELETE FROM interlock.holds WHERE position = position_;
END $$;

-- One append, whole or not at all; alone in its transaction. The same append done twice (by its token) is done once.
-- The first arrays have an element for each effect, the next ones for each entry, the last ones for each reservation.
CREATE FUNCTION interlock.append(
    token_ bigint,
    effect_ids text[], expected integer[], counts integer[], names text[], request_keys text[], decisions integer[],
    seqs integer[], kinds text[], times bigint[], bodies text[],
    freeing integer[],
    item_entries integer[], item_budgets text[], item_amounts bigint[], item_limits bigint[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    here bigint;
    at_entry integer := 0;
    positions_ bigint[] := '{}';
    seen integer;
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF current_setting('lock_timeout') = '0' THEN
        PERFORM set_config('lock_timeout', '30s', true);
    END IF;
    FOR i IN 1 .. cardinality(effect_ids) LOOP
        IF expected[i] = 0 THEN
            here := nextval('interlock.positions');
            INSERT INTO interlock.effects (position, effect_id, name, request_key, decision, last_seq, phase)
            VALUES (here, effect_ids[i], names[i], request_keys[i], decisions[i], counts[i],
                    interlock.phase_after('new', kinds[at_entry + 1 : at_entry + counts[i]]))
            ON CONFLICT (effect_id) DO NOTHING;
        ELSE
            UPDATE interlock.effects SET
                last_seq = last_seq + counts[i],
                phase = interlock.phase_after(phase, kinds[at_entry + 1 : at_entry + counts[i]])
            WHERE effect_id = effect_ids[i] AND last_seq = expected[i]
            RETURNING position INTO here;
        END IF;
        IF NOT FOUND THEN
            SELECT f.last_seq INTO seen FROM interlock.effects f WHERE f.effect_id = effect_ids[i];
            IF EXISTS (SELECT 1 FROM interlock.effects f JOIN interlock.entries e USING (position)
                       WHERE f.effect_id = effect_ids[i] AND e.seq = expected[i] + 1 AND e.token = token_) THEN
                RETURN 'appended before';
            END IF;
            RAISE EXCEPTION 'conflict' USING ERRCODE = 'IL001', DETAIL = json_build_object(
                'effect', effect_ids[i], 'expected', expected[i], 'seen', coalesce(seen, 0))::text;
        END IF;
        positions_ := positions_ || array_fill(here, ARRAY[counts[i]]);
        at_entry := at_entry + counts[i];
    END LOOP;
    INSERT INTO interlock.entries (position, seq, kind, at_ms, phase, body, token)
    SELECT n.position, n.seq, n.kind, n.at_ms, '', n.body, token_
    FROM unnest(positions_, seqs, kinds, times, bodies) AS n (position, seq, kind, at_ms, body);
    IF cardinality(freeing) > 0 OR cardinality(item_entries) > 0 THEN
        PERFORM interlock.reckon(positions_, freeing, item_entries, item_budgets, item_amounts, item_limits);
    END IF;
    RETURN 'appended';
END $$;

-- Free and reserve what the entries of one append do, in their order. Last in its transaction: it locks budgets.
CREATE FUNCTION interlock.reckon(
    positions_ bigint[], freeing integer[],
    item_entries integer[], item_budgets text[], item_amounts bigint[], item_limits bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    entry_ integer;
    i integer := 1;
BEGIN
    FOR entry_ IN SELECT DISTINCT x FROM unnest(freeing || item_entries) AS x ORDER BY x LOOP
        IF entry_ = ANY (freeing) THEN
            PERFORM interlock.release(positions_[entry_]);
        ELSIF EXISTS (SELECT 1 FROM interlock.holds WHERE position = positions_[entry_]) THEN
            RAISE EXCEPTION 'budgets named twice' USING ERRCODE = 'IL004';
        END IF;
        WHILE item_entries[i] = entry_ LOOP
            PERFORM interlock.reserve(positions_[entry_], item_budgets[i], item_amounts[i], item_limits[i]);
            i := i + 1;
        END LOOP;
    END LOOP;
END $$;

-- Renew a session's lease. Returns the backend that did it, or nothing if the session is over.
CREATE FUNCTION interlock.renew(name_ text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- a renewal that is lost only shortens what others believe
    UPDATE interlock.sessions SET renewed_at = clock_timestamp()
    WHERE name = name_ AND state = 'open'
      AND (mode = 'lock' OR renewed_at + lease_ms * interval '1 ms' > clock_timestamp());
    RETURN CASE WHEN FOUND THEN pg_backend_pid() END;
END $$;

-- Look at a session. One whose lock is free, or which has not renewed its lease in time, is lost from now on: it can
-- never renew it again, so its sender stops at the end of the lease.
CREATE FUNCTION interlock.sight(name_ text) RETURNS SETOF interlock.sessions LANGUAGE plpgsql AS $$
DECLARE
    found_ interlock.sessions;
BEGIN
    SELECT * INTO found_ FROM interlock.sessions WHERE name = name_ FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF found_.state = 'open' AND (CASE found_.mode
        WHEN 'lock' THEN pg_try_advisory_xact_lock_shared(found_.lock_key)
        ELSE found_.renewed_at + found_.lease_ms * interval '1 ms' <= clock_timestamp()
    END) THEN
        found_.state := 'lost';
        PERFORM set_config('synchronous_commit', 'on', true);
        UPDATE interlock.sessions SET state = 'lost' WHERE name = name_;
    END IF;
    RETURN NEXT found_;
END $$;
