"""The protocol-neutral core: frames, events, turns, requests, and values derived from a seed.

Pure: the standard library only, no I/O, no clock, no randomness.
"""
