"""Servers of other projects, recorded and replayed."""
