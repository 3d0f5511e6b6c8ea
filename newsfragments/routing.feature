Messages reach the right worker exactly once, and wait for it when it is not there.
