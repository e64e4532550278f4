"""Bodies of requests with as many fields as possible, by API."""

from __future__ import annotations

from tests.fuzz.bodies import (
    agui,
    anthropic,
    bedrock,
    chat,
    cohere,
    completions,
    echo,
    gemini,
    interactions,
    responses,
)
from tests.fuzz.bodies.values import MODEL, SCHEMA

__all__ = ["MODEL", "RICH", "SCHEMA"]

RICH = {
    "chat": chat.bodies,
    "responses": responses.bodies,
    "anthropic": anthropic.bodies,
    "gemini": gemini.bodies,
    "agui": agui.bodies,
    "bedrock": bedrock.bodies,
    "echo": echo.bodies,
    "completions": completions.bodies,
    "cohere": cohere.bodies,
    "interactions": interactions.bodies,
}
