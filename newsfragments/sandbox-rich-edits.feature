The sandbox edits a message into a rich one and back, and counts the levels of a rich message as its limit says.
