"""The frames of AWS event streams as text that people read. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence

from mockllm.core.errors import WireError
from mockllm.core.events import Frame
from mockllm.wire.framing.eventstream import (
    PRELUDE,
    MessageScanner,
    begins_stream,
    block,
    lengths,
    parts,
)


def readable(writes: Sequence[bytes]) -> Iterator[bytes]:
    """The visible form of each write of a body: its bytes, or lines in place of frames.

    A frame is a line in the write that ends it, with kind, name and payload; the writes before have
    a line that says how much of it has come. From bytes that are no frame on, bytes are shown.
    """
    if not begins_stream(b"".join(writes[:PRELUDE])[:PRELUDE]):
        yield from writes
        return
    scanner, pending = MessageScanner(), bytearray()
    rest = iter(writes)
    for data in rest:
        pending += data
        lines: list[str] = []
        try:
            for begin, end in scanner.read(data):
                lines.append(_line(bytes(pending[: end - begin])))
                del pending[: end - begin]
        except WireError as error:
            yield "".join([*lines, f"! {error}\n"]).encode("utf-8", "replace") + pending
            break
        if pending:
            size = f" of {lengths(pending)[0]}" if len(pending) >= PRELUDE else ""
            lines.append(f"… {len(pending)}{size} bytes of a frame\n")
        yield "".join(lines).encode("utf-8", "replace")
    yield from rest


def _line(data: bytes) -> str:
    """The lines of a whole frame: what `chunk` has in base64 is a line of its own."""
    begin, end = parts(data)["payload"]
    try:
        frames = block(data)
    except WireError as error:
        return f"! {error}: {data[begin:end].decode('utf-8', 'replace')}\n"
    frame = frames[0] if frames else Frame(data[begin:end].decode("utf-8", "replace"))
    line = f"{frame.kind} {frame.event or '(no name)'} {frame.data}\n"
    inner = _inner(frame.data or "")
    return f"{line}  {inner}\n" if inner else line


def _inner(payload: str) -> str:
    """The text that a payload has in base64; "" where it has none."""
    try:
        return base64.b64decode(json.loads(payload)["bytes"], validate=True).decode()
    except (ValueError, TypeError, LookupError, RecursionError):
        return ""
