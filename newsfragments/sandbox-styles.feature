The sandbox refuses styles of buttons that the Bot API does not name.
