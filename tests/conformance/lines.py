"""Answers jobs of `environment` as JSON lines, in another virtual environment.

It needs the standard library only, since mockllm is not installed there.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["RunClient", "serve"]

RunClient = Callable[[str, dict[str, Any]], dict[str, Any]]
"""A client: takes a base URL and a job (`prompt`, `tools`); returns arguments of `Outcome.of`."""


def serve(package: str, clients: Mapping[str, RunClient]) -> None:
    """Answers each line of standard input with a line of standard output, until it ends.

    A job is `{"client": NAME, "base_url": ..., "prompt": ..., "tools": [...]}`; the client
    `version` is the version of the package. An answer is `{"result": ...}` or `{"raised": ...}`.
    """
    # Clients print; their output must not be mixed with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        job = json.loads(line)
        name = job.pop("client")
        if name == "version":
            answer: dict[str, Any] = {"result": importlib.metadata.version(package)}
        else:
            answer = _answer(clients[name], job)
        answers.write(json.dumps(answer, default=repr) + "\n")
        answers.flush()


def _answer(run: RunClient, job: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": run(job.pop("base_url"), job)}
    except Exception as error:  # noqa: BLE001 - any exception of a client is its outcome
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"raised": {"kinds": kinds, "message": str(error)}}
