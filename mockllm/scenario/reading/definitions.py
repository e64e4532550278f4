"""The definitions of `schema.json`: the kinds of mappings in the language, and their keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "schema.json").read_text(encoding="utf-8")
)
# A document is a scenario, an MCP server, or a file that scenarios include.
_OF_SCENARIOS = {
    key: schema
    for key, schema in _SCHEMA["properties"].items()
    if _SCHEMA["then"]["properties"].get(key) is not False
}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "scenario": {**_SCHEMA, **_SCHEMA["anyOf"][0], "properties": _OF_SCENARIOS},
    **_SCHEMA["$defs"],
}
PROPERTIES: dict[str, dict[str, Any]] = {
    name: definition["properties"]
    for name, definition in DEFINITIONS.items()
    if "properties" in definition
}
"""The keys of each definition with their schemas, in the order of `schema.json`."""
