A sandbox: a local Telegram with a Bot API server and a chat page for the browser, to try everything without an account.
On the chat page messages can be answered and changed, and Threads opened, renamed and deleted.
