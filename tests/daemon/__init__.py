"""Tests of the daemon's own parts."""
