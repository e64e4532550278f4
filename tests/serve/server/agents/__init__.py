"""Requests of coding agents, in the shapes that they have, to a server."""
