"""Services, time, files and processes: nothing here knows Telegram or Pi."""
