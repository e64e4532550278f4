"""mockllm: scenarios as the wire streams of LLM services, recorded, replayed and checked."""

__version__ = "0.1.0"
