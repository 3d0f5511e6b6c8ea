`/name` gives a worker's Thread a name of your own; directory titles tell equal project names apart; a Thread that you close is left alone, and what was for it comes when you open it again.
