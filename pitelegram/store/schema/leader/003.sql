-- What an operator says about Threads, and what may be deleted.

ALTER TABLE bindings ADD COLUMN manual_name TEXT;
-- Once two live bindings shared a directory name, the letter stays in the title.
ALTER TABLE bindings ADD COLUMN suffixed INTEGER NOT NULL DEFAULT 0;
-- A title that the user gave the Thread himself is left alone.
ALTER TABLE bindings ADD COLUMN user_title TEXT;

-- Where a worker's Thread was before /attach; /detach goes back there.
CREATE TABLE attachments (
    binding_key TEXT PRIMARY KEY,
    chat_id INTEGER NOT NULL,
    thread_id INTEGER NOT NULL,
    at_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Threads that a review found inactive, and what became of them.
CREATE TABLE cleanups (
    operation_id TEXT NOT NULL,
    binding_key TEXT NOT NULL,
    chat_id INTEGER NOT NULL,
    thread_id INTEGER NOT NULL,
    inactive_since_ms INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reviewed', 'claimed', 'deleted', 'blocked')),
    reason TEXT NOT NULL DEFAULT '',
    changed_ms INTEGER NOT NULL,
    PRIMARY KEY (operation_id, binding_key)
) WITHOUT ROWID;
-- A registration looks here: a claimed Thread is being deleted at this moment.
CREATE UNIQUE INDEX cleanups_claimed ON cleanups (binding_key) WHERE state = 'claimed';

-- A message that waits until the operator said for whom it is.
CREATE TABLE choosers (
    chooser_id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL UNIQUE,
    chat_id INTEGER NOT NULL,
    thread_id INTEGER,
    message_id INTEGER,
    state TEXT NOT NULL CHECK (state IN ('open', 'sent', 'cleaning')),
    expires_ms INTEGER,
    changed_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Directories behind the picker's buttons.
CREATE TABLE pickers (
    token TEXT PRIMARY KEY,
    directory BLOB NOT NULL,
    at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX pickers_age ON pickers (at_ms);
