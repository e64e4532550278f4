"""The environment variables that lead the SDKs of Anthropic Messages to a server."""

from __future__ import annotations

from mockllm.protocols.records import Environment

ENVIRONMENT = Environment(
    base_urls=(("ANTHROPIC_BASE_URL", ""),),
    keys=("ANTHROPIC_API_KEY",),
    other_keys=("ANTHROPIC_AUTH_TOKEN",),
)
