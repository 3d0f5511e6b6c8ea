A stopped worker can be forgotten: its slot and files are free again, and what it had not said yet is said in the Control Thread.
