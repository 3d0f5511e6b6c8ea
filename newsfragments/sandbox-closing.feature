On the sandbox page a Thread can be closed and opened again, and text can be sent in All without opening one.
