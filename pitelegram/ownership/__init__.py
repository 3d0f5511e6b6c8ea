"""Who may speak for a bot: the transaction guard, ``owners.json``, ``locks.json``."""
