"""Fields of an answer's frames that no neutral type holds: what a service adds to its API.

A turn is encoded to frames of one API. A recorded answer with the same content differs from them
in fields such as `provider`, `x_groq` or `usage.cost`. `difference` finds these fields, `apply`
adds them to the frames again. Pure.

The value that both share is JSON:

    {"join": [KIND, ...], "drop": [KIND, ...], "move": {KIND: KIND, ...},
     "add": {KIND: [PATCH or text, ...], ...}, "stream": {KIND: PATCH, ...}, "body": PATCH}

A recorded stream says nothing of a body, and the other way round, so each has its own entries. The
events of `join` are sent as one with the events before them. Those of `drop` are not sent, those of
`move` right after another one. Events of `add` come after another one; each is a copy of the event
before it, patched, or a text that is no JSON object (`[DONE]`). A KIND is `*` (every event), a kind
of event (its types joined by dots, or the shape of a chunk), or `kind#2`: the second event of a
kind, whose patch replaces that of the kind; events are counted after those of `join` are joined. A
PATCH changes one event, or the body, by JSON pointers (RFC 6901):

    {"set": {POINTER: value}, "copy": {POINTER: POINTER}, "remove": [POINTER],
     "each": {POINTER: [value, ...]}}

`copy` reads the event before any change, so it holds text of the model under other names; a pointer
after `^` leads into the event that is sent before. `each` sets the field of the first, the second,
and the next events of a kind to different values. JSON Merge Patch (RFC 7386) cannot tell a null
field from an absent one; this notation can. An operation whose pointer leads nowhere is left out:
the reply in the YAML may have been edited.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mockllm.core.frame import Frame
from mockllm.errors import WireError
from mockllm.protocols.arrangement import (
    Arrangement,
    Entry,
    arranged,
    entries_of,
    in_order,
    moved,
    renumbered,
)
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.protocols.field_patch import Patch, patch_of, patch_of_errors, patch_of_events, patched
from mockllm.protocols.joins import joined, joins
from mockllm.protocols.normalisation import (
    ABSENT,
    answer_in,
    difference_of_frames,
    in_envelope,
    is_ignored,
    value_of,
)
from mockllm.protocols.patches import Patches, changed, collected
from mockllm.protocols.same_content import check_content, content, moves_content

__all__ = ["apply", "apply_to_body", "content", "difference", "difference_of_errors"]

Json = dict[str, Any]

_SMALL = 16_000
_SHARE = 4
"""An extra has at most 16,000 characters, or a quarter of those of the recorded answer."""


# Difference


def difference(
    protocol: WireProtocol, encoded: Sequence[Frame], recorded: Sequence[Frame], *, streamed: bool
) -> Json:
    """The extra with which `apply` gives the recorded frames, but for what normalisation ignores.

    Args:
        encoded: the frames of a turn; a body is one frame, in the envelope of its API.
        streamed: whether they are events of a stream.

    Raises:
        WireError: the answers differ in more than extra fields: in their events, in a list of
            content, in what a decoder reads; or the extra would be too large for the answer.
    """
    ours, theirs = _events(protocol, encoded), _events(protocol, recorded)
    if not streamed:
        return _difference_of_bodies(protocol, ours, theirs)
    try:
        return _difference(protocol, ours, theirs, _in_turn(protocol, ours, theirs))
    except WireError as error:
        problem = error
    try:
        return _difference(protocol, ours, theirs, arranged(protocol, ours, theirs))
    except WireError:
        raise problem from None


def _difference_of_bodies(
    protocol: WireProtocol, ours: Sequence[Frame], theirs: Sequence[Frame]
) -> Json:
    if len(ours) != 1 or len(theirs) != 1:
        raise WireError(f"{len(theirs)} events were recorded, the turn has a body")
    patch = patch_of(protocol, value_of(ours[0]), value_of(theirs[0]), streamed=False)
    extra = {"body": patch} if patch else {}
    _check_size(extra, theirs)
    after = _bodies(protocol, ours, extra)
    check_content(protocol, ours, after, streamed=False)
    _check_equal(protocol, theirs, after)
    return extra


def _in_turn(protocol: WireProtocol, ours: Sequence[Frame], theirs: Sequence[Frame]) -> Arrangement:
    """Each of our events as the recorded one with its number, some of ours joined before."""
    names = joins(protocol, ours, theirs)
    count = len(joined(protocol, [(0, one) for one in ours], names))
    if count != len(theirs):
        raise WireError(f"{len(theirs)} events were recorded, the turn has {len(ours)}")
    return Arrangement(tuple(names), tuple(range(count)))


def _difference(
    protocol: WireProtocol, ours: Sequence[Frame], theirs: Sequence[Frame], found: Arrangement
) -> Json:
    """The extra of a stream whose events are the recorded ones in an arrangement."""
    whole = joined(protocol, [(0, one) for one in ours], found.joined)
    entries = entries_of(protocol, whole)
    extra: Json = {"join": list(found.joined)} if found.joined else {}
    extra |= in_order([one.name for one in entries], found.pairs)
    patches, added = _patches(protocol, entries, theirs, found.pairs)
    extra |= {"add": added} if added else {}
    by_kind = collected(protocol, entries, patches) if any(patches.values()) else {}
    extra |= {"stream": by_kind} if by_kind else {}
    _check_size(extra, theirs)
    sent = list(_sent(protocol, moved(entries, extra), extra))
    after = [frame for _, _, frame in sent]
    check_content(protocol, [frame for _, frame in whole], after, streamed=True)
    if any(moves_content(protocol, before, frame) for _, before, frame in sent):
        raise WireError("the text is cut into events in another way")
    _check_equal(protocol, theirs, after)
    return extra


def _patches(
    protocol: WireProtocol,
    entries: Sequence[Entry],
    theirs: Sequence[Frame],
    pairs: Sequence[int | None],
) -> tuple[dict[str, Patch], Json]:
    """The patches by the names of events, and the `add` of an extra.

    Raises:
        WireError: an event cannot be patched, or is added before the first one.
    """
    patches: dict[str, Patch] = {}
    added: Json = {}
    name, before = "", ABSENT
    for number, frame in zip(pairs, theirs, strict=True):
        value = value_of(frame)
        if number is not None:
            name = entries[number].name
            ours = value_of(entries[number].frame)
            patches[name] = patch_of(protocol, ours, value, streamed=True, before=before)
        elif not name:
            raise WireError("the stream begins with another event")
        elif isinstance(value, dict) and isinstance(before, dict):
            added.setdefault(name, []).append(patch_of_events(protocol, before, value))
        else:
            added.setdefault(name, []).append(frame.data)
        before = value if isinstance(value, dict) else before
    return patches, added


def _check_equal(
    protocol: WireProtocol, recorded: Sequence[Frame], changed: Sequence[Frame]
) -> None:
    left = difference_of_frames(protocol, recorded, changed)
    if left is not None:
        raise WireError(left)


def difference_of_errors(
    protocol: WireProtocol, encoded: Json, recorded: Json, message: str
) -> Json:
    """The extra with which `apply_to_body` gives the recorded body of an HTTP error. A body of
    another form than that of the API has the same message in other fields.

    Args:
        message: of the encoded error.

    Raises:
        WireError: the errors differ in more than extra fields.
    """
    patch = patch_of_errors(protocol, encoded, recorded, message)
    after = patched(encoded, patch)
    read = protocol.decode_error(after)
    if read is not None and read != protocol.decode_error(encoded):
        raise WireError("a field of the service changes the error that a client reads")
    extra = {"body": patch} if patch else {}
    _check_size(extra, [Frame(dumps(recorded))])
    _check_equal(protocol, [Frame(dumps(recorded))], [Frame(dumps(after))])
    return extra


def _events(protocol: WireProtocol, frames: Sequence[Frame]) -> list[Frame]:
    return [frame for frame in frames if not is_ignored(protocol, frame)]


def _check_size(extra: Json, recorded: Sequence[Frame]) -> None:
    try:
        text = json.dumps(extra, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except ValueError as error:
        raise WireError(f"a field of the service cannot be written in YAML: {error}") from None
    answer = sum(len(frame.data or "") for frame in recorded)
    if len(text) > max(_SMALL, answer // _SHARE):
        raise WireError(f"fields of the service have {len(text)} of {answer} characters")


# Application


def apply(
    protocol: WireProtocol, frames: Sequence[tuple[int, Frame]], extra: Mapping[str, Any]
) -> list[tuple[int, Frame]]:
    """The events of a stream with the fields of an extra; the inverse of `difference`.

    Args:
        frames: with the times when they are due.
    """
    whole = joined(protocol, frames, extra.get("join") or ()) if extra.get("join") else frames
    entries = entries_of(protocol, whole)
    in_place = moved(entries, extra)
    sent = list(_sent(protocol, in_place, extra))
    after = [frame for _, _, frame in sent]
    if len(sent) != len(entries) or in_place != entries:
        after = renumbered(protocol, after)
    return [(at, frame) for (at, _, _), frame in zip(sent, after, strict=True)]


def _sent(
    protocol: WireProtocol, entries: Iterable[Entry], extra: Mapping[str, Any]
) -> Iterator[tuple[int, Frame | None, Frame]]:
    """The events that are sent: when they are due, as they were encoded (None for added ones), and
    changed."""
    patches, added = Patches(extra.get("stream") or {}), extra.get("add") or {}
    before: object = ABSENT
    for one in entries:
        frame = one.frame
        if one.name:
            frame = changed(frame, patches.of(one.kind, one.name), before)
        yield one.at, one.frame, frame
        if one.name and isinstance(value := value_of(frame), dict):
            before = value
        for more in added.get(one.name, ()) if one.name else ():
            if isinstance(more, str):
                yield one.at, None, Frame(more)
                continue
            if isinstance(before, dict):
                template = Frame(dumps(before), event=frame.event)
                frame = changed(template, [more])
                before = value_of(frame)
                yield one.at, None, frame


def _bodies(
    protocol: WireProtocol, frames: Sequence[Frame], extra: Mapping[str, Any]
) -> list[Frame]:
    """The only frame of a body, changed."""
    bodies = (apply_to_body(answer_in(protocol, value_of(frame)), extra) for frame in frames)
    return [Frame(dumps(in_envelope(protocol, body))) for body in bodies]


def apply_to_body(body: Json, extra: Mapping[str, Any]) -> Json:
    """The body of an answer that is not streamed, with the fields of an extra."""
    return patched(body, extra.get("body") or {})
