-- Prompts that are made of several messages, their files, and the order that the operator gave them.

CREATE TABLE inbox_next (
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
        ('admitted', 'joined', 'held', 'handed', 'settled', 'skipped', 'uncertain')),
    -- The row whose prompt this one is part of (state `joined`, or what became of it).
    head INTEGER,
    -- Where it stands in its lane once it was moved; before that its `seq` says so.
    place INTEGER,
    -- Marked by the operator: dropped when its turn comes.
    skip INTEGER NOT NULL DEFAULT 0,
    body BLOB,
    prompt TEXT,
    -- Beside the text: files, images, a summary (JSON).
    content BLOB,
    rpc_id TEXT,
    run_id TEXT,
    mark_file TEXT,
    mark_size INTEGER,
    mark_entry TEXT,
    admitted_ms INTEGER NOT NULL,
    handed_ms INTEGER,
    settled_ms INTEGER,
    confirmed_ms INTEGER,
    CHECK (state <> 'joined' OR head IS NOT NULL)
);
INSERT INTO inbox_next (seq, delivery_id, source, kind, update_id, chat_id, thread_id, message_id,
    lane, state, body, prompt, rpc_id, run_id, mark_file, mark_size, mark_entry, admitted_ms,
    handed_ms, settled_ms, confirmed_ms)
SELECT seq, delivery_id, source, kind, update_id, chat_id, thread_id, message_id,
    lane, state, body, prompt, rpc_id, run_id, mark_file, mark_size, mark_entry, admitted_ms,
    handed_ms, settled_ms, confirmed_ms FROM inbox;
-- A number is never given twice, also when the newest rows were forgotten.
DELETE FROM sqlite_sequence WHERE name = 'inbox_next';
INSERT INTO sqlite_sequence (name, seq) SELECT 'inbox_next', seq FROM sqlite_sequence
    WHERE name = 'inbox';
DROP TABLE inbox;
ALTER TABLE inbox_next RENAME TO inbox;

CREATE INDEX inbox_live ON inbox (seq)
    WHERE state IN ('admitted', 'joined', 'held', 'handed', 'uncertain');
CREATE INDEX inbox_confirmed ON inbox (confirmed_ms) WHERE confirmed_ms IS NOT NULL;
CREATE INDEX inbox_message ON inbox (chat_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX inbox_head ON inbox (head) WHERE head IS NOT NULL;
