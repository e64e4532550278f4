"""Documents of recorded MCP servers, in a folder of scenarios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mockllm.core.text import quantity
from mockllm.play.mcp.rpc import CHANGED, PROGRESS
from mockllm.play.replay.loading import loads
from mockllm.record.recording.drafting.mcp_drafts import RecordedCall, draft_server
from mockllm.record.recording.finding import calls_not_found
from mockllm.record.recording.store.locks import put
from mockllm.record.redaction.placeholders import placeholder_kinds
from mockllm.record.redaction.redact import Redactor
from mockllm.scenario.dump import dump
from mockllm.scenario.ignoring import flaw_of
from mockllm.scenario.model import Ignored, Scenario


class WrittenServer(NamedTuple):
    """The document of a server as it was written.

    Args:
        found: for each request why it does not get its answer from the document; "" where it does,
            None where a document has no answer to it.
        summary: what is in it, and what is not, for people.
    """

    found: list[str | None]
    summary: str

    @property
    def not_found(self) -> str:
        """The number of requests that do not get their answers, and why the first one does not."""
        missing = [why for why in self.found if why]
        asked = sum(why is not None for why in self.found)
        return f"{len(missing)} of {asked} requests: {missing[0]}" if missing else ""


def document_file(name: str) -> str:
    """The name of the file of a server."""
    return f"mcp-{name}.yaml"


def write_server(
    folder: Path,
    name: str,
    calls: Sequence[RecordedCall],
    redactor: Redactor,
    ignore: Ignored = (),
) -> WrittenServer:
    """Writes the document of a server without secrets, and asks it for what was recorded.

    Raises:
        ScenarioError: it could not be loaded again, and is not written.
    """
    clean = _without_secrets(calls, redactor)
    server = draft_server(name, clean, ignore)
    text = dump(Scenario(f"mcp:{name}", (), server=server))
    scenarios = loads(text)
    folder.mkdir(parents=True, exist_ok=True)
    put(folder / document_file(name), text.encode())
    judged = [
        why and redactor.text(why)  # it may quote arguments
        for why in calls_not_found(scenarios, name, calls, clean)
    ]
    called = [why for call, why in zip(calls, judged, strict=True) if call.method == "tools/call"]
    secrets = placeholder_kinds([text]).total()
    parts = [
        quantity(len(server.tools), "tool"),
        f"{quantity(len(called), 'call')}, {called.count('')} found again",
        *([f"{quantity(secrets, 'secret')} hidden"] if secrets else []),
        *_losses(calls, judged),
    ]
    return WrittenServer(judged, ", ".join(parts))


_NO_LOSS = ("initialize", "server/discover", "ping", "")


def _losses(calls: Sequence[RecordedCall], found: Sequence[str | None]) -> Iterator[str]:
    """Messages that passed, and that a document does not have."""
    lost = Counter(
        call.method
        for call, why in zip(calls, found, strict=True)
        if why is None
        # An error of `server/discover` is how a client finds the era out.
        and (call.method not in _NO_LOSS or (call.method == "initialize" and call.status >= 400))
    )
    lost.update(
        str(message.get("method"))
        for call in calls
        for message in call.before
        if message.get("method") not in ((PROGRESS, CHANGED) if call.method else (CHANGED,))
    )
    if lost:
        yield f"not played: {', '.join(f'{count} {method}' for method, count in lost.items())}"


def _without_secrets(calls: Sequence[RecordedCall], redactor: Redactor) -> list[RecordedCall]:
    """The calls without secrets, each the same in all, and where arguments had some."""
    said: list[Any] = [[call.request, call.answer, list(call.before)] for call in calls]
    clean = []
    # A bare list would be searched as the events of a stream, whose texts go on in the next one.
    without = redactor.json({"calls": said})["calls"]
    for call, (request, answer, before) in zip(calls, without, strict=True):
        hidden = call._replace(request=request, answer=answer, before=before)
        paths = _changed_paths("$", call.arguments, hidden.arguments)
        clean.append(hidden._replace(hidden=tuple(filter(_can_be_ignored, paths))))
    return clean


def _can_be_ignored(path: str) -> bool:
    return flaw_of(path) is None


def _changed_paths(path: str, before: Any, after: Any) -> Iterator[str]:
    """The paths at which two values of one form differ."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for key in before:
            quote = '"' if "'" in key else "'"
            yield from _changed_paths(f"{path}[{quote}{key}{quote}]", before[key], after[key])
    elif isinstance(before, list) and isinstance(after, list):
        for index, pair in enumerate(zip(before, after, strict=False)):
            yield from _changed_paths(f"{path}[{index}]", *pair)
    elif before != after:
        yield path
