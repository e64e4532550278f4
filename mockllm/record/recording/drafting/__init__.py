"""Captured exchanges to scenarios. Pure."""
