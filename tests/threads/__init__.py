"""Tests of Threads."""
