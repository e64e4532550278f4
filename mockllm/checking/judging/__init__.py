"""Runs a client through cases, and attributes every difference in its outcomes to an invariant."""
