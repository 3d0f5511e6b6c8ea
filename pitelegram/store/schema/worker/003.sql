-- What goes out: answers that are not rendered yet, their buttons, files of the agent.

CREATE TABLE answers_next (
    delivery_id TEXT PRIMARY KEY,
    -- Deliveries that one raw answer became share its place.
    seq INTEGER NOT NULL,
    part INTEGER NOT NULL DEFAULT 0,
    -- `raw`: Pi's own words, which are rendered before they are submitted; nothing overtakes them.
    kind TEXT NOT NULL CHECK (kind IN ('raw', 'final', 'notice')),
    delivery BLOB NOT NULL,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO answers_next (delivery_id, seq, kind, delivery, created_ms)
SELECT delivery_id, seq, kind, delivery, created_ms FROM answers;
DROP TABLE answers;
ALTER TABLE answers_next RENAME TO answers;
CREATE UNIQUE INDEX answers_order ON answers (seq, part);

-- Buttons under answers.  One press each; `keyboard` is what the message shows, to mark the pressed one.
CREATE TABLE buttons (
    key TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    prompt TEXT NOT NULL,
    style TEXT,
    keyboard BLOB NOT NULL,
    pressed INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX buttons_age ON buttons (created_ms);

-- Files that the agent gave to the answer of its run; copies, in the binding's directory.
CREATE TABLE attached (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    photo INTEGER NOT NULL DEFAULT 0,
    caption TEXT,
    created_ms INTEGER NOT NULL
);
