"""What a user sees of a turn: prompt text in, rendered answer out."""
