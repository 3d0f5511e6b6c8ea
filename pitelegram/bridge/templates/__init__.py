"""Command templates: programs with placeholders, described in JSON and run without a shell.

A template is read once (C{reading}), and with values becomes a plan (C{planning}) that somebody else
runs.  Everything here is pure.
"""
