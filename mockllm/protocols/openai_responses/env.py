"""The environment variables that lead the SDKs of Responses to a server."""

from __future__ import annotations

from mockllm.protocols.openai_common import ENVIRONMENT

__all__ = ["ENVIRONMENT"]
