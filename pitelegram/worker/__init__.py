"""A worker process: inbox, hand-over to Pi, answers, bus client."""
