"""The private control socket: HTTP API, commands, status document."""
