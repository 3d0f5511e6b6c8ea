The sandbox takes rich messages and drafts, and its page shows them; files, albums and reactions go by the mouse.
