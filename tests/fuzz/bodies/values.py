"""What the bodies of several APIs have."""

from __future__ import annotations

from typing import Any

MODEL = "fuzz-1"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Paris", "Rome"]},
        "days": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 2},
    },
    "required": ["city"],
    "additionalProperties": False,
}
PNG = "iVBORw0KGgo="
"""The first bytes of a picture, in base64."""
