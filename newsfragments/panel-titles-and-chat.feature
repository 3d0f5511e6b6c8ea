The panel chooses which worker the chat serves where there are no Threads, and how Threads are titled.
