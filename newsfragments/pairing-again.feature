Whoever was the owner before is told that another account has been paired; a pairing code is good once, whatever happens to its file.
