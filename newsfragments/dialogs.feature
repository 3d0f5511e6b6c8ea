Questions of Pi's extensions appear in the worker's Thread and are answered there: choices by buttons in pages, texts by a reply, each once and for a limited time.
