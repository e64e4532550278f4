"""Bodies of requests of the Echo API, which only tests have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import MODEL, SCHEMA


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies at least; the first one has most fields."""
    yield {
        "speaker": MODEL,
        "live": True,
        "stage": "Be brief.",
        "scene": "one",
        "muse": True,
        "gadgets": [{"title": "get_weather", "about": "d", "settings": SCHEMA}],
        "pick": {"gadget": "get_weather"},
        "dialogue": [
            {"who": "human", "line": "party 🎉"},
            {
                "who": "machine",
                "line": "calling",
                "cues": [{"cue": "c1", "gadget": "get_weather", "settings": '{"city":"Paris"}'}],
            },
            {"who": "gadget", "cue": "c1", "line": "sunny", "broken": False},
            {"who": "human", "line": "hello"},
        ],
    }
    yield {
        "speaker": MODEL,
        "live": False,
        "shape": SCHEMA,
        "dialogue": [{"who": "human", "line": "json please"}],
    }
