"""The environment variables that lead the SDKs of Gemini to a server."""

from __future__ import annotations

from mockllm.protocols.records import Environment

ENVIRONMENT = Environment(
    base_urls=(("GOOGLE_GEMINI_BASE_URL", ""),),
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
