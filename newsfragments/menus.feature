Menus in a worker's Thread: model, thinking level, queue, sessions, settings and compaction by buttons that keep working after a restart; Pi's prompt templates and skills are commands.
