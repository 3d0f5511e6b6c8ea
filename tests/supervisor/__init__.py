"""Tests of pitelegram.supervisor."""
