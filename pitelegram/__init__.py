"""pi-telegram: run many Pi coding agents from a phone, through one Telegram bot."""

__version__ = "0.1.0"
"""The one place where the version stands; C{setup.cfg} reads it."""
