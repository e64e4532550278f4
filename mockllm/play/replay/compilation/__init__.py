"""Turns and tapes become HTTP answers, which are cached."""
