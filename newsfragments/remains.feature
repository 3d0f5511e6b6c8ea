Stopping a worker, or starting it again after a crash, ends what its tools left running, and a session can be named on the command line as Pi names it.
