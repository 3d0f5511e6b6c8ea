A Thread that was deleted, or that Telegram only says is gone, costs no answer and no question: both come once, in the Thread that takes its place or in the one that lives.
