"""Tests of pitelegram.kernel."""
