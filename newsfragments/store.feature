Everything that must survive a crash is in SQLite files of the profile; a write is acknowledged only after it is on disk.
