"""The definitions of `schema.json`: the kinds of mappings in the language, and their keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "schema.json").read_text(encoding="utf-8")
)
DEFINITIONS: dict[str, dict[str, Any]] = {
    # A document is a scenario, or a file that scenarios include.
    "scenario": {**_SCHEMA, **_SCHEMA["anyOf"][0]},
    **_SCHEMA["$defs"],
}
PROPERTIES: dict[str, dict[str, Any]] = {
    name: definition["properties"]
    for name, definition in DEFINITIONS.items()
    if "properties" in definition
}
"""The keys of each definition with their schemas, in the order of `schema.json`."""
