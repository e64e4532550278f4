"""Images and files in messages: what conditions on them compare.

A condition (`match.user_files`) is the digest of a file's bytes (`sha256:...`), the URL or the id
that the request refers to it by, or a pattern for its media type (`image/*`); or it says how many
files there are. Pure.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from typing import Any

from mockllm.core.request import SentFile
from mockllm.core.text import display
from mockllm.scenario.model import FileCount


def source_of(file: SentFile) -> str:
    """The identity of a file: the digest of its bytes, `sha256:` and 64 hexadecimal digits, or its
    URL or id; "" where its bytes are no base64."""
    return _read(file.data)[0] if file.data else file.reference


@lru_cache(maxsize=16)  # of a request that many scenarios are compared with; images are large
def _read(data: str) -> tuple[str, int]:
    """The digest of bytes that are sent as base64, and their number; "" for what is no base64."""
    text = "".join(data.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        decoded = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return "", 0
    return f"sha256:{sha256(decoded).hexdigest()}", len(decoded)


def describe_files(files: Sequence[SentFile]) -> str:
    """Files as messages name them: `image/png sha256:9f86d081884c7d65 (1,234 bytes)`."""
    return ", ".join(map(_describe, files)) or "none"


def _describe(file: SentFile) -> str:
    if not file.data:
        return f"{file.media_type} {display(file.reference)}"
    digest, size = _read(file.data)
    shown = f"{digest} ({size:,} bytes)" if digest else "that is no base64"
    return f"{file.media_type} {shown}"


def check_files(
    what: str, expected: Sequence[str] | FileCount, files: Sequence[SentFile]
) -> str | None:
    """Why files are not those of a condition, one by one in their order, or in their number; None
    where they are."""
    if isinstance(expected, FileCount):
        return _check_count(what, expected, files)
    if len(expected) != len(files):
        noun = "file" if len(expected) == 1 else "files"
        return f"{what} must have {len(expected)} {noun}, got {len(files)}: {describe_files(files)}"
    for number, (wanted, file) in enumerate(zip(expected, files, strict=True), 1):
        if fnmatchcase(file.media_type, wanted) or wanted == source_of(file):
            continue
        kind = file.media_type.partition("/")[0]
        name = kind if kind in ("image", "audio", "video") else "file"
        return f"{what}: {name} {number} must be {wanted}, got {_describe(file)}"
    return None


def _check_count(what: str, wanted: FileCount, files: Sequence[SentFile]) -> str | None:
    count = sum(_is_counted(wanted, file) for file in files)
    if count >= wanted.least and (wanted.most is None or count <= wanted.most):
        return None
    kind = f" of the type {wanted.type}" if wanted.type is not None else ""
    digest = f" with the digest {wanted.digest}" if wanted.digest is not None else ""
    of = f" of {len(files)}" if kind or digest else ""
    got = f"{count}{of}: {describe_files(files)}"
    return f"{what} must have {_number(wanted)}{kind}{digest}, got {got}"


def _is_counted(wanted: FileCount, file: SentFile) -> bool:
    if wanted.type is not None and not fnmatchcase(file.media_type, wanted.type):
        return False
    return wanted.digest is None or source_of(file) == wanted.digest


def _number(wanted: FileCount) -> str:
    """The number of files that a condition wants: `2 files`, `at least 1 file`."""
    if wanted.most is None or wanted.most == wanted.least:
        prefix = "at least " if wanted.most is None else ""
        return f"{prefix}{wanted.least} {'file' if wanted.least == 1 else 'files'}"
    bounds = f"{wanted.least} to {wanted.most}" if wanted.least else f"at most {wanted.most}"
    return f"{bounds} {'file' if wanted.most == 1 else 'files'}"


def wanted_files(expected: Sequence[str] | FileCount) -> Any:
    """The expectation of a condition, as a JSON value."""
    if not isinstance(expected, FileCount):
        return list(expected)
    bounds = {"least": expected.least, "most": expected.most}
    named = {"type": expected.type, "digest": expected.digest}
    return {"count": bounds} | {key: value for key, value in named.items() if value is not None}
