Workers are started, watched, restarted with growing pauses, stopped step by step and taken over by the next daemon; a second daemon for the same bot is refused by name.
