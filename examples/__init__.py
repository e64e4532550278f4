"""Programs and files to read: runners, a resilient client, correct accumulators, load tests."""
