"""Quirks: ways in which the streams of real servers break the rules of their protocols.

A folder for each API and one for framing; `stream_errors` are quirks of several APIs. A quirk is
one entry of one list, with the change of the stream; its description (the servers that do it, what
clients get wrong, what is right) stands in `quirks.yaml` beside it. `QUIRKS` is the table of all; a
group is imported when one of its quirks is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from itertools import chain

from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.wire.protocols import PROTOCOLS

__all__ = ["QUIRKS", "Quirk", "Variant", "find"]

_GROUPS = {
    "chat": "chat",
    "usage": "chat",
    "sse": "framing",
    "err": "stream_errors",
    "anth": "anthropic",
    "resp": "responses",
    "gem": "gemini",
    "agui": "agui",
    "ollama": "ollama",
    "compl": "completions",
    "cohere": "cohere",
    "bedrock": "bedrock",
    "ia": "interactions",
}
"""By the first word of a quirk's name: the module with `QUIRKS` of its group."""


class _Quirks(MutableMapping[str, Quirk]):
    def __init__(self) -> None:
        self._imported: dict[str, dict[str, Quirk]] = {}
        self._others: dict[str, Quirk] = {}

    def _group(self, module: str) -> dict[str, Quirk]:
        if module not in self._imported:
            quirks = import_module(f"{__name__}.{module}").QUIRKS
            self._imported[module] = {quirk.name: quirk for quirk in quirks}
        return self._imported[module]

    def _group_of(self, name: str) -> dict[str, Quirk]:
        module = _GROUPS.get(name.partition("-")[0])
        return self._others if module is None else self._group(module)

    def __getitem__(self, name: str) -> Quirk:
        return self._group_of(name)[name]

    def __setitem__(self, name: str, quirk: Quirk) -> None:
        self._group_of(name)[name] = quirk

    def __delitem__(self, name: str) -> None:
        del self._group_of(name)[name]

    def __iter__(self) -> Iterator[str]:
        for module in dict.fromkeys(_GROUPS.values()):
            yield from self._group(module)
        yield from self._others

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def over(self, api: str) -> Iterator[Quirk]:
        """The quirks that occur in an API; the modules of other APIs are not imported."""
        modules = dict.fromkeys(_GROUPS.values())
        groups = [
            self._group(module) for module in modules if module == api or module not in PROTOCOLS
        ]
        for quirk in chain(*(group.values() for group in (*groups, self._others))):
            if quirk.applies_to(api):
                yield quirk


QUIRKS = _Quirks()
"""Every quirk by its name, group by group."""


def find(name: str) -> tuple[Quirk, Variant]:
    """The quirk and the variant of a name, `NAME` or `NAME:VARIANT`.

    Raises:
        UsageError: there is none; the message lists the most similar names.
    """
    plain, _, variant_name = name.partition(":")
    quirk = QUIRKS.get(plain)
    if quirk is None:
        hint = did_you_mean(plain, QUIRKS, "`mockllm list quirks` lists them", most=3)
        raise UsageError(f"there is no quirk {plain!r}; {hint}")
    variant = quirk.variant(variant_name)
    if variant is None:
        known = ", ".join(v.name for v in quirk.variants if v.name) or "none"
        raise UsageError(f"quirk {plain!r} has no variant {variant_name!r}; it has: {known}")
    return quirk, variant
