The panel starts workers in directories that are picked, moves them between Threads with `/attach` and `/detach`, and deletes inactive Threads by proof.
