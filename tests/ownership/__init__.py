"""Tests of pitelegram.ownership."""
