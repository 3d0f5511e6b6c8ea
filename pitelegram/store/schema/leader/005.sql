-- The user closed the Thread in his client: it is left alone until he opens it again.

ALTER TABLE bindings ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;
