"""Counts how often one request, one recorded exchange and one check change the file they run in.

`python -m tools.walk` prints, for each walk, the changes from one file of mockllm to another
(calls and returns), the number of files, and the number of calls. A walk that enters a file many
times for a small thing is a place to look at, not a verdict.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from examples.accumulators import REFERENCES
from mockllm.checking import examine
from mockllm.checking.cases.compile import plain_cases
from mockllm.core.http import NO_TARGET
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.redact import Redactor
from mockllm.wire.protocols import PROTOCOLS

_PACKAGE = f"{Path(__file__).parent.parent / 'mockllm'}/"


@dataclass(slots=True)
class Walk:
    """A profile function (`sys.setprofile`) that follows the files of mockllm."""

    hops: int = 0
    calls: int = 0
    files: Counter[str] = field(default_factory=Counter)
    _now: str = ""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        here = frame.f_code.co_filename
        if event == "call" and here.startswith(_PACKAGE):
            self.calls += 1
            self._enter(here)
        elif event == "return" and here.startswith(_PACKAGE):
            back = frame.f_back
            while back is not None and not back.f_code.co_filename.startswith(_PACKAGE):
                back = back.f_back
            if back is not None:
                self._enter(back.f_code.co_filename)

    def _enter(self, file: str) -> None:
        if file != self._now:
            self._now = file
            self.hops += 1
            self.files[file.removeprefix(_PACKAGE)] += 1


def walk(work: Callable[[], object]) -> Walk:
    """The walk of a piece of work."""
    found = Walk()
    sys.setprofile(found)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def main() -> None:
    """Prints the three walks."""
    scenarios = load(shipped_scenarios() / "secret-numbers.yaml")
    protocol, player, session = PROTOCOLS["chat"], Player(scenarios), Session("walk")
    text = [{"role": "user", "content": "secret numbers please"}]
    sent: dict[str, Any] = {"model": "gpt-4o", "stream": True, "messages": text}
    body = json.dumps(sent).encode()

    def request() -> HttpAnswer:
        return player.play(ApiCall(protocol, NO_TARGET, {}, body, session)).answer

    redactor = Redactor()
    drafting = Drafting(pattern=redactor.pattern)

    def record() -> None:
        for draft in drafting.add(redactor.exchange(exchange)):
            store.write(draft)

    cases = list(plain_cases(scenarios, "chat"))[:1]
    walks = {"request": walk(request)}
    answer = request()
    url = protocol.client.service + protocol.client.path
    exchange = Captured("POST", url, (), body, answer.status, answer.headers, answer.chunks)
    with tempfile.TemporaryDirectory() as folder:
        store = Folder(Path(folder))
        walks["recorded exchange"] = walk(record)
    walks["check"] = walk(lambda: examine(REFERENCES["chat"], cases))
    for name, found in walks.items():
        most = ", ".join(f"{file} {count}" for file, count in found.files.most_common(4))
        print(f"{name}: {found.hops} hops, {len(found.files)} files, {found.calls} calls ({most})")


if __name__ == "__main__":
    main()
