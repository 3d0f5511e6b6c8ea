When Telegram slows a chat down, answers, questions and menus go first; activity, previews and `typing…` wait, and what several workers show alike is sent once.
