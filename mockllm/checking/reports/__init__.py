"""What a user gets to see of a failed case: the smallest stream, files that reproduce it."""
