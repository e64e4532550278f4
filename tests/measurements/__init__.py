"""Adapters of well-known clients, what was measured with them, and the benchmarks."""
