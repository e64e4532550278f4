"""Coding agents: who sends a request, which of its words are the user's, and what of it is the
machine that the agent runs on. Pure.

`agents.yaml` says it of each agent, with the version in which it was seen; `known_agents` reads it.
"""
