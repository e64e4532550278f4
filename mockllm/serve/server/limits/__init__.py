"""Limits on what the clients of a server may use."""
