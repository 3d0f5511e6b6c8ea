-- The leader's store.  Times are milliseconds since the epoch.

CREATE TABLE leader (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch TEXT NOT NULL,
    acquired_ms INTEGER NOT NULL
);

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE cursors (
    bot_id INTEGER PRIMARY KEY,
    next_offset INTEGER NOT NULL
);

-- One row per update.  `body` is the update as it came; it is dropped when the row settles.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    bot_id INTEGER NOT NULL,
    update_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    chat_id INTEGER NOT NULL,
    thread_id INTEGER,
    message_id INTEGER,
    callback_id TEXT,
    state TEXT NOT NULL CHECK (state IN
        ('pending', 'forwarding', 'held', 'retry_wait', 'failed', 'settled')),
    recipient TEXT,
    delivery_id TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    wrong_receipts INTEGER NOT NULL DEFAULT 0,
    next_attempt_ms INTEGER,
    reason TEXT,
    told INTEGER NOT NULL DEFAULT 0,
    confirmed INTEGER NOT NULL DEFAULT 0,
    received_ms INTEGER NOT NULL,
    settled_ms INTEGER,
    body BLOB,
    UNIQUE (bot_id, update_id)
);
CREATE INDEX journal_live ON journal (seq) WHERE state <> 'settled';
CREATE INDEX journal_unconfirmed ON journal (recipient, seq)
    WHERE state = 'settled' AND confirmed = 0 AND recipient IS NOT NULL;
CREATE INDEX journal_settled ON journal (settled_ms) WHERE state = 'settled';
CREATE INDEX journal_delivery ON journal (delivery_id)
    WHERE delivery_id IS NOT NULL AND confirmed = 0;

-- A callback whose action was executed by the daemon itself.
CREATE TABLE callbacks (
    callback_id TEXT PRIMARY KEY,
    executed_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE specs (
    spec_id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    directory TEXT NOT NULL UNIQUE,
    desired TEXT NOT NULL CHECK (desired IN ('running', 'stopped')),
    trust TEXT NOT NULL DEFAULT 'approve',
    restart TEXT NOT NULL DEFAULT 'on-failure',
    slot_id TEXT,
    session_id TEXT,
    session_file TEXT,
    session_entries INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL
);

-- An attempt to make a worker process; committed before the process is made.
CREATE TABLE spawns (
    spawn_id TEXT PRIMARY KEY,
    spec_id TEXT NOT NULL REFERENCES specs (spec_id) ON DELETE CASCADE,
    credential BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'made', 'registered', 'ended')),
    pid INTEGER,
    birth TEXT,
    pi_pid INTEGER,
    pi_birth TEXT,
    intended_ms INTEGER NOT NULL,
    registered_ms INTEGER,
    ended_ms INTEGER,
    exit TEXT
);
CREATE INDEX spawns_live ON spawns (spec_id) WHERE state <> 'ended';

-- Observed registrations, newest per binding.
CREATE TABLE workers (
    binding_key TEXT PRIMARY KEY,
    worker_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('managed', 'attached')),
    pid INTEGER NOT NULL,
    birth TEXT NOT NULL,
    generation TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    registered_ms INTEGER NOT NULL,
    ended_ms INTEGER
);

-- Which Thread belongs to whom.  A route is a row here with a live registration.
CREATE TABLE bindings (
    binding_key TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('managed', 'attached', 'daemon')),
    directory TEXT,
    chat_id INTEGER,
    thread_id INTEGER,
    slot TEXT,
    thread_name TEXT,
    title TEXT,
    epoch TEXT,
    inactive_since_ms INTEGER,
    updated_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX bindings_target ON bindings (chat_id, coalesce(thread_id, 0))
    WHERE chat_id IS NOT NULL;
CREATE UNIQUE INDEX bindings_slot ON bindings (slot) WHERE slot IS NOT NULL;

-- An intent to make a Thread; committed before createForumTopic.
CREATE TABLE provisions (
    binding_key TEXT PRIMARY KEY,
    chat_id INTEGER NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('in-flight', 'ambiguous')),
    started_ms INTEGER NOT NULL
);

-- Who sent, or was given, which message (edits, reactions and buttons carry no thread id).
CREATE TABLE messages (
    chat_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    binding_key TEXT NOT NULL,
    outgoing INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (chat_id, message_id)
) WITHOUT ROWID;
CREATE INDEX messages_age ON messages (at_ms);

CREATE TABLE outbox (
    key TEXT PRIMARY KEY,
    binding_key TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('final', 'notice')),
    state TEXT NOT NULL CHECK (state IN
        ('pending', 'sending', 'retry_wait', 'uncertain', 'dead_letter', 'hold', 'delivered')),
    digest TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    finished_ms INTEGER,
    UNIQUE (binding_key, delivery_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX outbox_order ON outbox (seq);
CREATE INDEX outbox_live ON outbox (seq) WHERE state <> 'delivered';
CREATE INDEX outbox_sendable ON outbox (binding_key, seq)
    WHERE state IN ('pending', 'sending', 'retry_wait');
CREATE INDEX outbox_delivered ON outbox (finished_ms) WHERE state = 'delivered';

-- The calls of a delivery.  `call` is dropped when the part is delivered.
CREATE TABLE outbox_parts (
    key TEXT NOT NULL REFERENCES outbox (key) ON DELETE CASCADE,
    part INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('pending', 'sending', 'retry_wait', 'uncertain', 'dead_letter', 'delivered')),
    attempts INTEGER NOT NULL DEFAULT 0,
    first_attempt_ms INTEGER,
    next_attempt_ms INTEGER,
    reason TEXT,
    message_ids TEXT,
    plain INTEGER NOT NULL DEFAULT 0,
    call BLOB,
    PRIMARY KEY (key, part)
) WITHOUT ROWID;

CREATE TABLE commands (
    request_id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN
        ('reserved', 'send_started', 'accepted', 'rejected', 'uncertain')),
    envelope BLOB,
    created_ms INTEGER NOT NULL,
    finished_ms INTEGER
) WITHOUT ROWID;

CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    subject TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor IN ('operator', 'policy', 'daemon')),
    change TEXT NOT NULL,
    reason TEXT NOT NULL
);
