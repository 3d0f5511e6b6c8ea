"""Tests of pitelegram.settings."""
