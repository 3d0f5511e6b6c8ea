"""Tests of how answers are rendered."""
