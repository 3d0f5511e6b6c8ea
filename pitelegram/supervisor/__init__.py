"""Desired specs, launch plans, the life of a worker process, stop ladder, adoption."""
