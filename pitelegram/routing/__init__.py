"""From the journal to a worker: admission, registry of followers, router, settlement."""
