"""Fakes and contract tests that users and this project share."""
