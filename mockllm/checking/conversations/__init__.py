"""Whether a client led its conversations correctly, judged from the journal alone."""
