"""Hostile requests, made from valid ones with a seed, and what every answer has to hold."""
