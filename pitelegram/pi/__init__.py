"""Pi as a host: framing, RPC channel, child process, session files, launch environment."""
