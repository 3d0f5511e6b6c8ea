Answers keep their formatting: Markdown becomes rich messages where the server has them, else text with entities, else plain text, and nothing of it is lost at a cut.
