"""An answer's Markdown as Bot API calls: rich, with entities, or plain; nothing of it lost."""
