Each worker has a letter, a name and a Thread of its own, made once; a deleted Thread is proven gone before it is replaced.
Titles follow `threadDisplayMode` at once, in five modes, within a budget of edits; a Thread that the user renamed keeps its name.
