Inactive Threads can be listed, reviewed and deleted from the command line: `pi-telegram threads list|review|delete-reviewed`.
