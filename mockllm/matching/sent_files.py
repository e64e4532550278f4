"""Images and files in messages: what conditions on them compare.

A condition (`match.user_files`) is the digest of a file's bytes (`sha256:...`), the URL or the id
that the request refers to it by, or a pattern for its media type (`image/*`). Pure.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256

from mockllm.core.request import SentFile
from mockllm.core.text import display


def source_of(file: SentFile) -> str:
    """What identifies a file: the digest of its bytes, `sha256:` and 64 hexadecimal digits, or its
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


def described(files: Sequence[SentFile]) -> str:
    """Files as messages name them: `image/png sha256:9f86d081884c7d65 (1,234 bytes)`."""
    return ", ".join(map(_described, files)) or "none"


def _described(file: SentFile) -> str:
    if not file.data:
        return f"{file.media_type} {display(file.reference)}"
    digest, size = _read(file.data)
    shown = f"{digest} ({size:,} bytes)" if digest else "that is no base64"
    return f"{file.media_type} {shown}"


def check_files(what: str, expected: Sequence[str], files: Sequence[SentFile]) -> str | None:
    """Why files are not those of a condition, one by one in their order; None where they are."""
    if len(expected) != len(files):
        noun = "file" if len(expected) == 1 else "files"
        return f"{what} must have {len(expected)} {noun}, got {len(files)}: {described(files)}"
    for number, (wanted, file) in enumerate(zip(expected, files, strict=True), 1):
        if fnmatchcase(file.media_type, wanted) or wanted == source_of(file):
            continue
        kind = file.media_type.partition("/")[0]
        name = kind if kind in ("image", "audio", "video") else "file"
        return f"{what}: {name} {number} must be {wanted}, got {_described(file)}"
    return None
