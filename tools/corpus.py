"""Examines recorded streams: `python -m tools.corpus DIR`.

DIR has folders `<api>/<name>/` with `request.json` (the body that was sent), `response.sse` (the
bytes that were received) and `meta.json` (`host`, `path`). Each stream is decoded, compared with
the outcome of the official client on the same bytes, and encoded again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mockllm.core.errors import MockLLMError, UsageError
from mockllm.core.events import Frame
from mockllm.core.http import Target
from mockllm.core.seeded import derive
from mockllm.core.timeline import expand
from mockllm.core.turn import Opaque, TokenUsage, Turn
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, WireProtocol
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.route_matching import target_of
from tools.comparison import difference_of_frames


@dataclass(frozen=True, slots=True)
class Recording:
    """One streamed exchange with a service.

    Args:
        api: the name of the protocol that it speaks.
        host: of the service.
        path: of the request, without the query.
    """

    api: str
    name: str
    host: str
    path: str
    request: Mapping[str, Any]
    stream: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Examination:
    """The result for one recorded stream.

    Args:
        raw: how many frames, or parts of frames, the neutral turn keeps verbatim.
        error: why it does not decode; None if it does.
        sdk: how the official client's outcome compares: `equal`, `differs`, `excused` (a bug of
            the client) or `n.a.`.
        sdk_via: the way to call the client that was compared.
        sdk_note: the first difference, or why it was not compared.
        reencoded: the first difference after encoding the decoded turn; None if there is none.
    """

    api: str
    name: str
    host: str
    frames: int = 0
    raw: int = 0
    error: str | None = None
    sdk: str = "n.a."
    sdk_via: str = ""
    sdk_note: str = ""
    reencoded: str | None = None

    @property
    def decoded(self) -> bool:
        """Whether the decoder accepted it."""
        return self.error is None

    @property
    def as_frames(self) -> bool:
        """Whether only the bytes are exact, because the turn does not encode to them."""
        return not self.decoded or self.reencoded is not None

    @property
    def passed(self) -> bool:
        """Whether it decodes, and the official client agrees."""
        return self.decoded and self.sdk != "differs"


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers of streams with each result."""

    streams: int
    decoded: int
    sdk_equal: int
    sdk_excused: int
    sdk_compared: int
    reencoded: int
    as_frames: int


def recordings(root: Path) -> list[Recording]:
    """The recordings below a directory, sorted by api and name.

    Raises:
        UsageError: there is none, or a file of one is missing or is not JSON.
    """
    found = [_read(path.parent) for path in sorted(root.glob("*/*/response.sse"))]
    if not found:
        raise UsageError(
            f"no <api>/<name>/response.sse below {root}; give the directory that holds the "
            "folders `chat`, `responses`, ..."
        )
    return found


def _read(folder: Path) -> Recording:
    request, meta = (_object(folder / name) for name in ("request.json", "meta.json"))
    return Recording(
        folder.parent.name,
        folder.name,
        str(meta.get("host", "")),
        str(meta.get("path", "")),
        request,
        (folder / "response.sse").read_bytes(),
    )


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} must be a file with a JSON object: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} must hold a JSON object, got {type(value).__name__}")
    return value


# One stream


def examine(recording: Recording, *, sdk: bool = True) -> Examination:
    """Examines one recording; it never raises, whatever was recorded.

    Args:
        sdk: also run the official client, on the bytes served over a loopback port.
    """
    identity = recording.api, recording.name, recording.host
    protocol = PROTOCOLS.get(recording.api)
    if protocol is None:
        known = ", ".join(PROTOCOLS)
        return Examination(
            *identity, error=f"no protocol is called {recording.api!r}, only {known}"
        )
    try:
        frames = protocol.usual.decode(recording.stream)
        turn, model = decode_turn(protocol, frames)
    except (MockLLMError, ValueError) as error:
        return Examination(*identity, error=str(error))
    outcome, via, note = _by_sdk(recording, turn) if sdk else ("n.a.", "", "not run")
    return Examination(
        *identity,
        frames=len(frames),
        raw=sum(isinstance(part, Opaque) for part in turn.parts),
        sdk=outcome,
        sdk_via=via,
        sdk_note=note,
        reencoded=_reencoded(recording, protocol, frames, turn, model),
    )


def _by_sdk(recording: Recording, turn: Turn) -> tuple[str, str, str]:
    from tools.sdks import compare

    verdict = compare(recording.api, recording.stream, turn)
    return verdict.outcome, verdict.via, verdict.note


def _reencoded(
    recording: Recording,
    protocol: WireProtocol,
    frames: Sequence[Frame],
    turn: Turn,
    model: str,
) -> str | None:
    """The first difference between the encoded turn and the recording; None if there is none."""
    try:
        # All recordings are event streams, which for Gemini only the query says.
        target = target_of(protocol, recording.path, "alt=sse") or Target()
        request = protocol.parse(recording.request, target, False)
        reply = Reply(
            seed=derive(recording.api, recording.name, length=32),
            token=derive(recording.api, recording.name, length=40, hex=True),
            model=model or request.model,
            options=protocol.options(request),
            usage=turn.usage or TokenUsage(0, 0),
        )
        encoder = protocol.encoder(turn, reply)
        encoded = [frame for timed in expand(turn) for frame in encoder.encode(timed.event)]
    except (MockLLMError, ValueError) as error:
        return f"the turn cannot be encoded: {error}"
    return difference_of_frames(protocol, frames, encoded)


def totals(examinations: Iterable[Examination]) -> Totals:
    """The numbers of streams with each result."""
    streams = list(examinations)
    return Totals(
        streams=len(streams),
        decoded=sum(stream.decoded for stream in streams),
        sdk_equal=sum(stream.sdk == "equal" for stream in streams),
        sdk_excused=sum(stream.sdk == "excused" for stream in streams),
        sdk_compared=sum(stream.sdk != "n.a." for stream in streams),
        reencoded=sum(stream.decoded and stream.reencoded is None for stream in streams),
        as_frames=sum(stream.as_frames for stream in streams),
    )


# The report


def line(one: Examination) -> str:
    """The result for one stream, in one line."""
    decoding = "decoded" if one.decoded else f"NOT DECODED ({one.error})"
    note = f" ({one.sdk_note})" if one.sdk_note else ""
    via = f" [{one.sdk_via}]" if one.sdk_via else ""
    sdk = {"equal": "yes", "differs": "NO", "excused": "yes but for the SDK"}.get(one.sdk, one.sdk)
    again = "yes" if one.reencoded is None and one.decoded else f"no ({one.reencoded})"
    kept = "yes" if one.as_frames else "no"
    return (
        f"{one.api}/{one.name} {one.host}: {one.frames} frames, {one.raw} raw, {decoding}, "
        f"SDK equal: {sdk}{via}{note}, re-encodes equal: {again}, kept as frames: {kept}"
    )


def summary(name: str, numbers: Totals) -> str:
    """Totals in one line."""
    count = numbers.sdk_excused
    excused = f" and {count} but for the SDK's own faults" if count else ""
    return (
        f"{name}: {numbers.streams} streams, {numbers.decoded} decoded, "
        f"{numbers.sdk_equal} of {numbers.sdk_compared} equal to the SDK{excused}, "
        f"{numbers.reencoded} re-encode to equal events, {numbers.as_frames} kept as frames"
    )


def _report(examinations: Sequence[Examination]) -> list[str]:
    apis = sorted({examination.api for examination in examinations})
    by_api = [
        summary(api, totals(examination for examination in examinations if examination.api == api))
        for api in apis
    ]
    return [*map(line, examinations), "", *by_api, summary("all", totals(examinations))]


def _as_json(examinations: Sequence[Examination]) -> str:
    apis = sorted({examination.api for examination in examinations})
    value = {
        "streams": [
            {
                **asdict(examination),
                "decoded": examination.decoded,
                "kept_as_frames": examination.as_frames,
            }
            for examination in examinations
        ],
        "totals": {
            api: asdict(
                totals(examination for examination in examinations if examination.api == api)
            )
            for api in apis
        },
        "all": asdict(totals(examinations)),
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 if a stream does not decode or differs from the SDK, 2 on wrong use."""
    parser = argparse.ArgumentParser(prog="python -m tools.corpus", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--no-sdk", action="store_true", help="do not run the official clients")
    given = parser.parse_args(arguments)
    try:
        examinations = [
            examine(recording, sdk=not given.no_sdk) for recording in recordings(given.directory)
        ]
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    print(_as_json(examinations) if given.json else "\n".join(_report(examinations)))
    return 0 if all(examination.passed for examination in examinations) else 1


if __name__ == "__main__":
    sys.exit(main())
