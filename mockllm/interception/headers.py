"""The headers by which a client says where its request belongs. Only data may live here."""

SESSION_HEADER = "x-mockllm-session"
"""The name of the session."""

ORIGIN_HEADER = "x-mockllm-origin"
"""Of a redirected request: the key of the server (`InterceptOptions.key`), a space, and the origin
of the service, such as `https://api.openai.com`."""
