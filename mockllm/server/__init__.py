"""The server: the only part of mockllm that does I/O."""
