"""The far end of `apart`: answers questions as JSON lines, in an environment of its own.

Needs nothing but the standard library, for mockllm is not installed there.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Ask", "serve"]

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Asks a client: base URL and question (`prompt`, `tools`) to the arguments of `Outcome.of`."""


def serve(package: str, asks: Mapping[str, Ask]) -> None:
    """Answers each line of standard input with a line of standard output, until it ends.

    A question is `{"ask": NAME, "base_url": ..., "prompt": ..., "tools": [...]}`, or asks for
    the `version` of the package. An answer is `{"said": ...}` or `{"raised": ...}`.
    """
    # Clients print; what they print must not get among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        question = json.loads(line)
        name = question.pop("ask")
        if name == "version":
            answer: dict[str, Any] = {"said": importlib.metadata.version(package)}
        else:
            answer = _answer(asks[name], question)
        answers.write(json.dumps(answer, default=repr) + "\n")
        answers.flush()


def _answer(ask: Ask, question: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"said": ask(question.pop("base_url"), question)}
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"raised": {"kinds": kinds, "message": str(error)}}
