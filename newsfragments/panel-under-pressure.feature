Buttons of the panel are answered at once however many are pressed, wait for a full disk instead of getting lost, and Threads that are switched off and on again keep the names you gave them.
