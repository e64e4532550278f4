"""State that several server processes share."""
