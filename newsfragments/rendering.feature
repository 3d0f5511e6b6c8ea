Answers are formatted: as rich messages, where Telegram refuses those with entities, else as plain text; long ones are a beginning and a file.
