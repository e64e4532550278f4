"""The headers by which a client says where its request belongs. Only data may live here."""

SESSION_HEADER = "x-mockllm-session"
"""The name of the session."""

ORIGIN_HEADER = "x-mockllm-origin"
"""Of a redirected request: the key of the server (`InterceptOptions.key`), a space, and the origin
of the service, such as `https://api.openai.com`."""

RUNNING_HEADER = "x-mockllm-running"
"""The name of the session that a request belongs to whose URL has that of the running test
(`RUNNING`): a redirected library says it."""

RUNNING = "running-test"
"""What stands for the session of the test that runs, in URLs of the environment."""

DEFAULT = "default"
"""The session of requests that name none, or none that can be."""
