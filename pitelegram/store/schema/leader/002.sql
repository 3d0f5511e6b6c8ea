-- Receipts of control commands with everything that a repeat is compared by, and a lease.
-- Ids of an older daemon stay taken: without a canonical form they match nothing.

ALTER TABLE commands RENAME TO commands_before;

CREATE TABLE commands (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    host_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    action TEXT NOT NULL,
    canonical_version INTEGER NOT NULL,
    canonical TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    selector_proof TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('reserved', 'send_started', 'accepted', 'rejected', 'uncertain')),
    owner_hash TEXT NOT NULL DEFAULT '',
    owner_until_ms INTEGER,
    envelope BLOB,
    created_ms INTEGER NOT NULL,
    started_ms INTEGER,
    finished_ms INTEGER,
    changed_ms INTEGER NOT NULL,
    UNIQUE (host_id, request_id),
    CHECK ((state IN ('accepted', 'rejected', 'uncertain')) = (finished_ms IS NOT NULL)),
    CHECK ((state IN ('accepted', 'rejected', 'uncertain')) = (envelope IS NOT NULL)),
    CHECK ((state IN ('reserved', 'send_started')) = (owner_hash <> '')),
    CHECK (state <> 'accepted' OR started_ms IS NOT NULL)
);
CREATE INDEX commands_state ON commands (host_id, state, changed_ms, seq);

INSERT INTO commands (host_id, request_id, action, canonical_version, canonical, fingerprint,
    selector_proof, subject, state, envelope, created_ms, started_ms, finished_ms, changed_ms)
SELECT '', request_id, '', 0, '', fingerprint, '', '',
    CASE state WHEN 'send_started' THEN 'uncertain' ELSE state END,
    coalesce(envelope, 'null'), created_ms, created_ms, coalesce(finished_ms, created_ms),
    coalesce(finished_ms, created_ms)
FROM commands_before WHERE state <> 'reserved';

DROP TABLE commands_before;

-- Changes that the daemon makes itself: written in the transaction that makes them.
CREATE TABLE effects (
    request_id TEXT PRIMARY KEY,
    at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX effects_age ON effects (at_ms);

-- What the restart policy has to remember beyond the daemon that counted.
ALTER TABLE specs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specs ADD COLUMN crashes TEXT NOT NULL DEFAULT '[]';
ALTER TABLE specs ADD COLUMN failure TEXT;
