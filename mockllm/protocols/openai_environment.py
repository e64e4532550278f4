"""The environment variables that OpenAI's SDKs read."""

from __future__ import annotations

from mockllm.protocols.records import Environment

ENVIRONMENT = Environment(
    # Azure's client appends the version itself. AZURE_OPENAI_API_KEY is not set: with it and
    # OPENAI_API_KEY, the openai module raises an error because it cannot choose a service.
    base_urls=(("OPENAI_BASE_URL", ""), ("AZURE_OPENAI_ENDPOINT", "/v1")),
    keys=("OPENAI_API_KEY",),
)
