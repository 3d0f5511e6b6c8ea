"""From the outbox to Telegram: sender, spool, orphans."""
