"""Work counted, not timed: lines that run, bytes that are read in C, and bytes that are copied."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any
from unittest.mock import patch

_Bytes = bytes | bytearray | str


class Work:
    """Counts the work of calls, in the patterns of some modules, too.

    A line costs 1, and the size of each text or bytes that it bound anew to a name or to an
    attribute of `self`. A method of a text or of bytes costs the size of these, and a pattern what
    it searches. So a loop that copies or searches all that is pending costs its square.
    """

    def __init__(self, *modules: ModuleType) -> None:
        self.count = 0
        self._modules = modules
        self._seen: dict[FrameType, dict[str, int]] = {}

    def of(self, call: Callable[[], object]) -> int:
        """The work of a call."""
        self.count = 0
        patched = [
            patch.object(module, name, _Counting(self, value))
            for module in self._modules
            for name, value in vars(module).items()
            if isinstance(value, re.Pattern)
        ]
        for one in patched:
            one.start()
        before = sys.gettrace(), sys.getprofile()
        sys.settrace(self._enter)
        sys.setprofile(self._call)
        try:
            call()
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])
            for one in patched:
                one.stop()
            self._seen.clear()
        return self.count

    def _enter(self, frame: FrameType, _event: str, _arg: object) -> Any:
        self._seen[frame] = _sizes_by_name(frame)[0]
        return self._line

    def _line(self, frame: FrameType, event: str, _arg: object) -> Any:
        known = self._seen.get(frame, {})
        names, sizes = _sizes_by_name(frame)
        self.count += 1 + sum(
            size for name, size in sizes.items() if known.get(name) != names[name]
        )
        self._seen[frame] = names
        if event == "return":
            del self._seen[frame]
        return self._line

    def _call(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and frame.f_code.co_filename != __file__:
            receiver = getattr(function, "__self__", None)
            self.count += len(receiver) if isinstance(receiver, _Bytes) else 1


def _sizes_by_name(frame: FrameType) -> tuple[dict[str, int], dict[str, int]]:
    """The identity and the size of each text or bytes that a frame has by a name."""
    names = dict(frame.f_locals)
    names |= {f"self.{name}": value for name, value in _attributes(names.get("self"))}
    found = {name: value for name, value in names.items() if isinstance(value, _Bytes)}
    return {name: id(value) for name, value in found.items()}, {
        name: len(value) for name, value in found.items()
    }


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()


class _Counting:
    """A pattern that counts what it searches."""

    def __init__(self, work: Work, pattern: re.Pattern[Any]) -> None:
        self._work, self._pattern = work, pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern, name)

    def finditer(self, text: Any, *where: int) -> Any:
        self._work.count += len(text[slice(*where, None)] if where else text)
        return self._pattern.finditer(text, *where)

    def sub(self, new: Any, text: Any) -> Any:
        self._work.count += len(text)
        return self._pattern.sub(new, text)

    def match(self, text: Any, *where: int) -> Any:
        found = self._pattern.match(text, *where)
        self._work.count += 1 if found is None else len(found[0])
        return found

    def fullmatch(self, text: Any) -> Any:
        self._work.count += len(text)
        return self._pattern.fullmatch(text)
