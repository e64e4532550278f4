"""How long a test waits before it fails."""

GIVE_UP = 60.0
"""Seconds after which a test that hangs fails. What works needs far less, even on a machine that is
ten times slower; the default of httpx, 5 s, is not enough there."""
