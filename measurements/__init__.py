"""What is measured: adapters of well-known clients and gateways, their results, and benchmarks."""
