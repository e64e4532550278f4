"""Loads the modules of examples/resilient_client, with the changes of a mutant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mockllm.scenario.model import Api
from tests.checking.resilience_mutants.declared import Mutant

_EXAMPLE = Path(__file__).parents[3] / "examples" / "resilient_client"
_MODULES = ("apis", "failures", "client", "runner")  # each imports those before it

Json = dict[str, Any]


def load(mutant: Mutant | None = None) -> Callable[[Json], Json]:
    """`run(case)` of the runner, with a client that has the bug of a mutant."""
    modules = _executed(mutant.name if mutant else "", changed(mutant))
    run, client = modules["runner"].run, modules["client"]
    return lambda case: run(case, client)


def spoken_apis() -> tuple[Api, ...]:
    """The APIs that the client speaks: no case of another one reaches a server."""
    spoken: tuple[Api, ...] = tuple(_executed("", changed(None))["apis"].APIS)
    return spoken


def changed(mutant: Mutant | None) -> dict[str, str]:
    """The texts of the modules with the changes of a mutant, by name.

    Raises:
        ValueError: a text that the mutant changes is not there exactly once.
    """
    texts = dict(_texts())
    for old, new in mutant.changes if mutant else ():
        having = [name for name, text in texts.items() for _ in range(text.count(old))]
        if len(having) != 1:
            raise ValueError(f"{mutant and mutant.name}: {len(having)} times in {having}: {old!r}")
        texts[having[0]] = texts[having[0]].replace(old, new)
    return texts


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    return tuple((name, (_EXAMPLE / f"{name}.py").read_text()) for name in _MODULES)


def _executed(mutant: str, texts: dict[str, str]) -> dict[str, ModuleType]:
    """The modules, which find each other by their short names while they are executed."""
    before = {name: sys.modules.pop(name, None) for name in texts}
    modules: dict[str, ModuleType] = {}
    try:
        for name, text in texts.items():
            module = modules[name] = ModuleType(f"resilient_client_{mutant}_{name}")
            sys.modules[name] = sys.modules[module.__name__] = module  # dataclasses look there
            exec(compile(text, str(_EXAMPLE / f"{name}.py"), "exec"), module.__dict__)
            del sys.modules[module.__name__]
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
    return modules
