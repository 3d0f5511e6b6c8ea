"""Tests of what a user sees of a turn."""
