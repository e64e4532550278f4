"""A protocol that lives in the tests only, and everything that mockllm does with a protocol."""
