"""The local bus between leader and followers: AMP, handshake, both sides of the wire."""
