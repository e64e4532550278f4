"""The environment variables that lead the SDKs of OpenAI's APIs to a server."""

from __future__ import annotations

from mockllm.protocols.base import Environment

__all__ = ["ENVIRONMENT"]

ENVIRONMENT = Environment(
    # Azure's client adds the version itself. Its key variable is not set: beside OPENAI_API_KEY
    # it makes the openai module refuse to choose between the two services.
    base_urls=(("OPENAI_BASE_URL", ""), ("AZURE_OPENAI_ENDPOINT", "/v1")),
    keys=("OPENAI_API_KEY",),
)
