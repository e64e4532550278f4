"""llama-cpp-python's server, in an environment of its own."""
