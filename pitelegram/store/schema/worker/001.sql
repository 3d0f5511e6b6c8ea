-- One binding's store: inbox, ledger of control requests, answers not yet submitted.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row per delivery.  `source` says where it came from; the same id is never admitted twice.
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    delivery_id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL CHECK (source IN ('telegram', 'control', 'again')),
    kind TEXT NOT NULL,
    update_id INTEGER,
    chat_id INTEGER,
    thread_id INTEGER,
    message_id INTEGER,
    lane TEXT NOT NULL DEFAULT 'normal' CHECK (lane IN ('control', 'priority', 'normal')),
    state TEXT NOT NULL CHECK (state IN
        ('admitted', 'held', 'handed', 'settled', 'skipped', 'uncertain')),
    body BLOB,
    prompt TEXT,
    rpc_id TEXT,
    run_id TEXT,
    mark_file TEXT,
    mark_size INTEGER,
    mark_entry TEXT,
    admitted_ms INTEGER NOT NULL,
    handed_ms INTEGER,
    settled_ms INTEGER,
    confirmed_ms INTEGER
);
CREATE INDEX inbox_live ON inbox (seq) WHERE state IN ('admitted', 'held', 'handed', 'uncertain');
CREATE INDEX inbox_confirmed ON inbox (confirmed_ms) WHERE confirmed_ms IS NOT NULL;

-- Results of control requests other than prompts, kept eight days.
CREATE TABLE ledger (
    request_id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'finished')),
    result BLOB,
    at_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Rendered answers; a row goes away on the leader's durable receipt.
CREATE TABLE answers (
    delivery_id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('final', 'notice')),
    delivery BLOB NOT NULL,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX answers_order ON answers (seq);
