"""Paths to operations, and what answers the paths that call no model."""
