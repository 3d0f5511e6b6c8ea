"""SQLite: one writer with group commit, numbered schema files, and a component per table."""
