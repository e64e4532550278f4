"""The client of examples/resilient_client with one bug each, and the rule that must find it.

`python -m tests.checking.resilience_mutants` runs them all, and writes
docs/maintainers/resilience-mutants.md.
"""
