"""Tests of Pi as a host."""
