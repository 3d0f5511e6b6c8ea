"""Tests of the Bot API package."""
