The Thread of a Pi in a terminal is deleted when that Pi quits in order and `threads.automaticCleanup` is on, once that is proven to harm nobody.
