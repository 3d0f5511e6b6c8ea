"""A local Telegram: Bot API emulator, chat page, scripted model provider."""
