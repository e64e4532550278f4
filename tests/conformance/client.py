"""One client library: its name and version, its `Run`, and the environment that it runs in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Run
from mockllm.scenario.model import Api

__all__ = ["API_KEY", "TIMEOUT", "Client", "NotInstalledError", "found_in"]

API_KEY = "mock-key"
TIMEOUT = 60.0
"""Seconds before a client gives up; mockllm answers in milliseconds."""


class NotInstalledError(Exception):
    """A client is not installed; the message has the command that installs it."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client library in one way of using it.

    Args:
        name: the library and the function, as users call them.
        package: its distribution.
        version: returns the installed version; raises `NotInstalledError` if there is none.
        api: the API of its requests.
        run: sends a request with it; exceptions of the client are raised.
        unseen: the fields of `Outcome` that it cannot report.
        notes: what a reader must know about its outcomes.
    """

    name: str
    package: str
    version: Callable[[], str]
    api: Api
    run: Run
    unseen: frozenset[str] = frozenset()
    notes: str = ""


def found_in(module: str, function: str) -> Run:
    """The function of a module of this package, imported at the first call: the import of all
    clients takes far longer than their requests."""

    def run(base_url: str, case: Case) -> Outcome:
        run_client = getattr(import_module(f"tests.conformance.{module}"), function)
        with _alone():
            outcome: Outcome = run_client(base_url, case)
            return outcome

    run.__name__ = f"{module}.{function}"
    return run


@contextmanager
def _alone() -> Iterator[None]:
    """Removes proxies and telemetry settings, and silences the client's warnings."""
    before = dict(os.environ)
    for name in before:
        if name.lower().endswith("_proxy") or name.startswith(("LANGSMITH_", "LANGCHAIN_")):
            del os.environ[name]
    os.environ.update(_SILENT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


_SILENT = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
