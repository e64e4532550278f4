"""The parts of a reply as functions, with the names and keys of scenario files.

Each function returns the mapping that a scenario file would have. Mistakes in it are reported when
it is used.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "Part",
    "audio",
    "auto",
    "edit",
    "error",
    "frame",
    "image",
    "interleaved",
    "native",
    "parallel",
    "pause",
    "read",
    "reasoning",
    "refusal",
    "server_tool",
    "shell",
    "text",
    "tool",
    "write",
]

Part = Mapping[str, Any]
Split = str | int | Mapping[str, Any] | Sequence[str]
"""How a text is cut into fragments: `"whole"`, `"chars"`, `"words"`, a number of characters,
`{"random": [1, 8]}`, or a list of the fragments."""


def _part(head: dict[str, Any], **keys: Any) -> Part:
    """The mapping without keys that have their default."""
    return head | {
        key: value
        for key, value in keys.items()
        if value != () and value is not None and value is not False
    }


def text(
    text: str,
    *,
    split: Split | None = None,
    every: str | None = None,
    citations: Sequence[Mapping[str, Any]] = (),
    logprobs: bool | Sequence[Mapping[str, Any]] = False,
    signature: str | None = None,
) -> Part:
    """Visible text.

    Args:
        split: how it is cut into fragments.
        every: the pause between fragments, such as `"20ms"`.
        citations: mappings with the keys of scenario files, such as `url` and `title`.
        logprobs: whether the answer has log probabilities, in APIs that have them; or the tokens
            of the text, mappings with `token`, `logprob` and `top`.
        signature: the service's opaque value of the text, which clients send back.
    """
    keys = {"citations": citations, "logprobs": logprobs, "signature": signature}
    return _part({"text": text}, split=split, every=every, **keys)


def reasoning(
    text: str,
    *,
    split: Split | None = None,
    every: str | None = None,
    signature: str | None = None,
    summary: bool = False,
) -> Part:
    """Reasoning, or a summary of it.

    Args:
        split, every: as in `text`.
        signature: the service's opaque proof of the reasoning, which clients send back.
        summary: whether the text is a summary of hidden reasoning.
    """
    keys = {"split": split, "every": every, "signature": signature, "summary": summary}
    return _part({"reasoning": text}, **keys)


def refusal(text: str, *, split: Split | None = None, every: str | None = None) -> Part:
    """A refusal.

    Args:
        split, every: as in `text`.
    """
    return _part({"refusal": text}, split=split, every=every)


def tool(
    name: str,
    arguments: Mapping[str, Any] | str | None = None,
    *,
    input: str | None = None,
    id: str | None = None,
    signature: str | None = None,
    malformed: bool = False,
    refused: bool = False,
    split: Split | None = None,
    every: str | None = None,
) -> Part:
    """A tool call; `SERVER.TOOL` names a tool of an MCP server.

    Args:
        arguments: a mapping, or text that is sent verbatim; None: a call without arguments.
        input: the free text for a custom tool, instead of arguments.
        id: of the call; default: derived from the scenario's seed.
        signature: the service's opaque proof of the reasoning before the call.
        malformed: whether the arguments may be text that is no JSON object.
        refused: whether the client is not to run it.
        split, every: as in `text`, for the arguments.
    """
    texts = {"input": input, "id": id, "signature": signature}
    keys = {**texts, "malformed": malformed, "refused": refused}
    head = {"tool": name} if arguments is None else {"tool": name, "arguments": arguments}
    return _part(head, **keys, split=split, every=every)


def shell(command: str, *, id: str | None = None) -> Part:
    """A command that a coding agent runs, by the tool that its request offers."""
    return _part({"shell": command}, id=id)


def write(path: str, content: str, *, id: str | None = None) -> Part:
    """A file that a coding agent writes."""
    return _part({"write": {"path": path, "content": content}}, id=id)


def read(path: str, *, id: str | None = None) -> Part:
    """A file that a coding agent reads."""
    return _part({"read": path}, id=id)


def edit(path: str, old: str, new: str, *, id: str | None = None) -> Part:
    """A text in a file that a coding agent replaces by another one."""
    return _part({"edit": {"path": path, "old": old, "new": new}}, id=id)


def server_tool(
    kind: str,
    *,
    id: str | None = None,
    name: str | None = None,
    input: Any = None,
    output: Any = None,
    split: Split | None = None,
    every: str | None = None,
) -> Part:
    """A call of a tool that the service runs itself, with its result.

    Args:
        kind: such as `"web_search"` or `"code_interpreter"`.
        id: of the call; default: derived from the scenario's seed, in APIs that have it.
        name: the name that is sent, where it is not the kind.
        input: what the model passes to the tool: a JSON value, or text.
        output: the result of the tool: a JSON value, or text.
        split, every: as in `text`, for the input.
    """
    head = {"server_tool": kind}
    return _part(head, id=id, name=name, input=input, output=output, split=split, every=every)


def image(
    data: bytes, type: str, *, every: str | None = None, signature: str | None = None
) -> Part:
    """An image.

    Args:
        data: its bytes.
        type: its media type, such as `"image/png"`.
        every: the pause before it.
        signature: the service's opaque value of the image, which clients send back.
    """
    return _part({"image": _media(data, type)}, every=every, signature=signature)


def audio(
    data: bytes,
    type: str,
    *,
    transcript: str | None = None,
    fragment_bytes: int | None = None,
    split: Split | None = None,
    every: str | None = None,
    signature: str | None = None,
) -> Part:
    """Sound.

    Args:
        data: its bytes.
        type: its media type, such as `"audio/wav"`.
        transcript: what is spoken, in APIs that send it.
        fragment_bytes: how many bytes a fragment has; default: all.
        split, every: as in `text`; `split` cuts the transcript.
        signature: the service's opaque value of the sound, which clients send back.
    """
    keys = {"transcript": transcript, "fragment_bytes": fragment_bytes, "signature": signature}
    return _part({"audio": _media(data, type)}, **keys, split=split, every=every)


def _media(data: bytes, type: str) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode(), "type": type}


def parallel(*calls: Part, order: Sequence[int] = ()) -> Part:
    """Tool calls whose fragments alternate.

    Args:
        order: the index of a call for each fragment; default: round robin.
    """
    return _part({"parallel": list(calls)}, order=tuple(order))


def interleaved(*parts: Part, order: Sequence[int]) -> Part:
    """Parts whose fragments alternate.

    Args:
        order: the index of a part for each fragment. The start of a call, and a frame, count as
            one fragment.
    """
    return {"interleaved": list(parts), "order": list(order)}


def pause(duration: str) -> Part:
    """A pause of the stream.

    Args:
        duration: such as `"300ms"` or `"2s"`.
    """
    return {"pause": duration}


def gate(name: str, *, limit: str | None = None) -> Part:
    """A place at which the answer waits until the test calls `mockllm_session.release(name)`.

    Args:
        limit: after which the answer goes on, and the test fails; default: `"30s"`.
    """
    return {"gate": name if limit is None else {"name": name, "limit": limit}}


def frame(
    data: Any = None,
    *,
    api: str,
    event: str | None = None,
    id: str | None = None,
    retry: int | None = None,
    comment: str | None = None,
    raw: str | None = None,
    first: bool | None = None,
) -> Part:
    """One frame that is sent verbatim.

    Args:
        data: text, or a JSON value; with the fields `event`, `id` and `retry`.
        api: the protocol over which it is sent; others leave it out.
        comment: the text of a comment, instead of data.
        raw: the text of the whole frame, instead of the others.
        first: whether it is sent before the first event of the API.
    """
    lines = {"data": data, "event": event, "id": id, "retry": retry}
    keys = {**lines, "comment": comment, "raw": raw}
    written = {key: value for key, value in keys.items() if value is not None}
    return _part({"frame": written, "api": api}, first=first)


def native(value: Mapping[str, Any], *, api: str) -> Part:
    """A part that only one API has, in the form of that API (docs/native-parts.md).

    Args:
        value: a JSON object with its `type`.
        api: the protocol over which it is sent; others leave it out.
    """
    return {"native": value, "api": api}


def error(message: str | None = None, *, type: str | None = None, code: str | None = None) -> Part:
    """An error inside the stream, in the form of the API; it ends the stream.

    Args:
        message, type, code: the fields of the error; default: those that the API uses.
    """
    return {"error": _part({}, message=message, type=type, code=code)}


def auto(*, tokens: int | str | None = None) -> Part:
    """An answer made from the request: the tool call that `tool_choice` demands, an object that
    satisfies the requested schema, or an echo.

    Args:
        tokens: words in place of an echo, as many as this number, or a distribution such as
            `"lognormal(200, p99=1500)"`.
    """
    return {"auto": True if tokens is None else {"tokens": tokens}}
