"""Tests of pi-telegram."""
