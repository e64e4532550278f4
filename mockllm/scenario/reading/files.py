"""Finds scenario files and reads their text: none outside of its folder, none twice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISREG

from mockllm.core.errors import Problem, ScenarioError

MAX_FILE = 8 * 1024 * 1024
"""Bytes in one scenario file."""

MAX_BODY = 64 * 1024 * 1024
"""Bytes in the file with the body of a route's answer."""

_SUFFIXES = (".yaml", ".yml")


def scenario_texts(paths: Iterable[str], problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """The names and texts of scenario files."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        for name in _expand(path, problems):
            try:
                content = _content(name, seen)
            except OSError as error:
                problems.append(_problem(name, f"cannot be read: {error.strerror}"))
                continue
            except ScenarioError as error:
                problems.extend(error.problems)
                continue
            if content is None:
                continue
            try:
                yield name, content.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                problems.append(_not_utf8(name, content, error.start))


def tape_path(file: str, name: str) -> str:
    """The path of a tape that a scenario file names, in the folder of that file or below it.

    Raises:
        OSError: it is not there, is no regular file, or is a link that leaves the folder. The
            message follows the name.
    """
    folder = os.path.dirname(file)  # noqa: PTH120 - a Path is slow
    path = os.path.join(folder, name)  # noqa: PTH118 - as above
    try:
        if "/" not in name and S_ISREG(os.lstat(path).st_mode):
            return path
        regular = S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except OSError as error:
        raise OSError(f"cannot be read: {error.strerror}") from None
    if not regular:
        raise OSError("is not a regular file")
    inside = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118 - keeps the last slash
    if not os.path.realpath(path).startswith(inside):
        raise OSError("is a link that leaves the folder")
    return path


def body_path(file: str, name: str) -> str:
    """The path of a file with the body of a route's answer, as `tape_path`.

    Raises:
        OSError: as of `tape_path`, and where the file is larger than `MAX_BODY`.
    """
    path = tape_path(file, name)
    if os.stat(path).st_size > MAX_BODY:  # noqa: PTH116 - as above
        raise OSError(f"is larger than {MAX_BODY // 2**20} MiB")
    return path


def read_bytes(file: str, name: str) -> bytes:
    """The content of a file that a scenario file names.

    Raises:
        OSError: as `tape_path`; or it is larger than `MAX_FILE`.
    """
    with open(tape_path(file, name), "rb") as handle:  # noqa: PTH123 - as above
        content = handle.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise OSError(f"is larger than {MAX_FILE // 2**20} MiB")
    return content


def _problem(name: str, message: str) -> Problem:
    return Problem(name, 1, 1, "", message)


def _not_utf8(name: str, content: bytes, at: int) -> Problem:
    line = content.count(b"\n", 0, at) + 1
    start = content.rfind(b"\n", 0, at) + 1
    column = len(content[start:at].decode("utf-8", "replace")) + 1
    return Problem(name, line, column, "", f"must be UTF-8, got byte 0x{content[at]:02x}")


def _content(name: str, seen: set[tuple[int, int]]) -> bytes | None:
    """The bytes of a file; None where the same file was read before, under any name."""
    status = os.stat(name)  # noqa: PTH116 - a Path for each of ten thousand files is slow
    if not S_ISREG(status.st_mode):
        raise ScenarioError([_problem(name, "is not a regular file")])
    # By inode and not by path: the same file may be named twice, or be there as a link as well.
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return None
    seen.add(identity)
    with open(name, "rb") as handle:  # noqa: PTH123 - as above
        # The size is checked after reading: a file may grow, and those in /proc report 0 bytes.
        content = handle.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        limit = f"is larger than {MAX_FILE // 2**20} MiB; make several files of it"
        raise ScenarioError([_problem(name, limit)])
    return content


def _expand(path: str, problems: list[Problem]) -> list[str]:
    if not os.path.isdir(path):  # noqa: PTH112 - as above
        return [path]
    count = len(problems)
    files = sorted(_search(path, problems), key=lambda name: Path(name).parts)
    if not files and len(problems) == count:
        problems.append(_problem(path, "holds no scenario file, *.yaml or *.yml"))
    return files


def _search(folder: str, problems: list[Problem]) -> Iterator[str]:
    inside = os.path.join(os.path.realpath(folder), "")  # noqa: PTH118 - keeps the last slash
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                listed = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError as error:
            problems.append(_problem(here, f"cannot be read: {error.strerror}"))
            continue
        for entry in listed:
            if entry.is_symlink():
                if not _stays_inside(entry, inside):
                    message = "is a link that leaves the folder; give its target as a path instead"
                    problems.append(_problem(entry.path, message))
                elif not entry.is_dir() and entry.name.endswith(_SUFFIXES):
                    yield entry.path
            elif entry.is_dir():
                waiting.append(entry.path)
            elif entry.name.endswith(_SUFFIXES):
                yield entry.path


def _stays_inside(entry: os.DirEntry[str], inside: str) -> bool:
    """Whether a link leads into the folder, or to a file that is not read anyway."""
    if not entry.name.endswith(_SUFFIXES) and not entry.is_dir():
        return True
    return (os.path.realpath(entry.path) + os.sep).startswith(inside)
