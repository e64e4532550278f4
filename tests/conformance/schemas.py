"""The JSON Schemas that come with mockllm: of the messages of runners, and of results files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import mockllm.conformance


@cache
def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        Path(mockllm.conformance.__file__).with_name(name).read_text("utf-8")
    )
    return found


def runner_schema() -> dict[str, Any]:
    """Of every line between mockllm and a runner; `$defs` has question, hello, case and answer."""
    return _read("runner.schema.json")


def results_schema() -> dict[str, Any]:
    """Of a results file."""
    return _read("results.schema.json")
