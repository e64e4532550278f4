"""Streams that are cut at every place: prefixes, judging, and the ways to run a client."""
