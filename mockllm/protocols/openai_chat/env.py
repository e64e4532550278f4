"""The environment variables that lead the SDKs of Chat Completions to a server."""

from __future__ import annotations

from mockllm.protocols.openai_common import ENVIRONMENT

__all__ = ["ENVIRONMENT"]
