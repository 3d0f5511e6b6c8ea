"""Hostile input, in numbers."""
