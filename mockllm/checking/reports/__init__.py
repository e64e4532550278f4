"""Reports of failed cases: the text, the smallest stream, and the files that reproduce it."""
