"""Gateways that `mockllm check-gateway` is tried with, and bugs that are planted in them."""
