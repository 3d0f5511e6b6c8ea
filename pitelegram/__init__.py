"""pi-telegram: run many Pi coding agents from a phone, through one Telegram bot."""
