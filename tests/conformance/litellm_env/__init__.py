"""litellm, in an environment of its own."""
