A message in a Thread that belongs to nobody, or a command in All, is kept until you choose its worker: sent there exactly once, never by guess, with a way to give the Thread to that worker.
