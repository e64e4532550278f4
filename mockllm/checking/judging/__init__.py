"""Runs a client through cases, and attributes each difference in outcome to an invariant."""
