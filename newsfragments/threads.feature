Each worker has a letter, a name and a Thread of its own, made once; a deleted Thread is proven gone before it is replaced.
