"""Coding agents as their users run them, against scenarios."""
