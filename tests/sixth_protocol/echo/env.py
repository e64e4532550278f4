"""The environment variables that lead clients of the Echo API to a server."""

from __future__ import annotations

from mockllm.protocols.records import Environment

__all__ = ["ENVIRONMENT"]

ENVIRONMENT = Environment(base_urls=(("ECHO_BASE_URL", ""),), keys=("ECHO_KEY",))
