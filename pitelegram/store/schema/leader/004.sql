-- Questions to the operator: for whom are the messages of a place that belongs to nobody?
-- The table of the version before was never used.

DROP TABLE choosers;
CREATE TABLE choosers (
    chooser_id TEXT PRIMARY KEY,
    place TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('thread', 'command')),
    chat_id INTEGER NOT NULL,
    thread_id INTEGER,
    source_seq INTEGER NOT NULL,
    command TEXT NOT NULL DEFAULT '',
    expires_ms INTEGER,
    message_id INTEGER,
    state TEXT NOT NULL CHECK (state IN ('open', 'sent', 'dispatching', 'cleaning')),
    choice TEXT CHECK (choice IN ('forward', 'restore')),
    recipient TEXT,
    old_thread_id INTEGER,
    changed_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- The updates that a choice was made for.
CREATE TABLE chooser_rows (
    seq INTEGER PRIMARY KEY,
    chooser_id TEXT NOT NULL REFERENCES choosers (chooser_id) ON DELETE CASCADE
);
CREATE INDEX chooser_rows_of ON chooser_rows (chooser_id);
