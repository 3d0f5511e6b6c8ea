A sandbox: a local Telegram with a Bot API server and a chat page for the browser, to try everything without an account.
