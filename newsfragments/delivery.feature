Answers survive crashes of every process: each arrives once, or is shown as undelivered with a button to send it again.
