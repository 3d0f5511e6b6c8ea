The agent can send files and pictures with its answer (`telegram_attach`), and is told how answers look in Telegram.
