-- What the restart policy has to remember beyond the daemon that counted.
ALTER TABLE specs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specs ADD COLUMN crashes TEXT NOT NULL DEFAULT '[]';
ALTER TABLE specs ADD COLUMN failure TEXT;
