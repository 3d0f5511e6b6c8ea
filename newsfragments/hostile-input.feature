Hostile and broken input on the control socket, from a worker, from Pi and from Telegram is answered or refused, never a crash and never somebody else's trouble.
