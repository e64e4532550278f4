"""Values for JSON Schemas that are made within the bounds."""

from __future__ import annotations

from typing import Any

from mockllm.play.replay.auto.schema_sample import bounded_sample


def sample(schema: Any) -> Any:
    """A value that satisfies a schema."""
    made = bounded_sample(schema)
    assert not made.gave_up
    return made.value
