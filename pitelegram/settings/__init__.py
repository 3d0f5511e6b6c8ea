"""``telegram.json``: declared keys, guarded merge-writes, precedence."""
