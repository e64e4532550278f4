"""One client: what it is, how it is asked, and the circumstances in which it is asked."""

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
TIMEOUT = 5.0
"""Seconds that a client waits for anything; mockllm answers in milliseconds."""


class NotInstalledError(Exception):
    """A client is not on this machine; the message says what would bring it."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client library in one way of using it.

    Args:
        name: the library and the way, as users call them.
        package: its distribution.
        version: of the installed package; raises `NotInstalledError` where there is none.
        api: the protocol that it speaks.
        run: asks it; what it raises is raised.
        unseen: the fields of `Outcome` that it has no way to tell.
        notes: what to know before its outcomes are judged.
    """

    name: str
    package: str
    version: Callable[[], str]
    api: Api
    run: Run
    unseen: frozenset[str] = frozenset()
    notes: str = ""


def found_in(module: str, function: str) -> Run:
    """The function of a module of this package, which is imported when it is first called:
    importing all clients takes far longer than asking them."""

    def run(base_url: str, case: Case) -> Outcome:
        ask = getattr(import_module(f"tests.conformance.{module}"), function)
        with _alone():
            outcome: Outcome = ask(base_url, case)
            return outcome

    run.__name__ = f"{module}.{function}"
    return run


@contextmanager
def _alone() -> Iterator[None]:
    """Without proxies and telemetry of the environment, and without the client's warnings."""
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
