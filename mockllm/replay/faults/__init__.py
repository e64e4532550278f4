"""Faults of answers: which answers have them, and what they make of these."""
