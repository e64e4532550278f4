"""A runner around the Echo accumulator: `python -m tests.sixth_protocol.runner`."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.outcome import Outcome
from mockllm.conformance.clients.messages import as_json
from mockllm.wire.protocols import PROTOCOLS
from tests.sixth_protocol.accumulator import EchoAccumulator
from tests.sixth_protocol.echo.protocol import PROTOCOL


def outcome(feed: list[Any], level: str) -> Outcome:
    """The outcome of the client for one stream."""
    if level == "bytes":
        reader = ReferenceBytes(PROTOCOL.name)
        for data in feed:
            reader.feed(base64.b64decode(data))
        reader.close()
        return reader.outcome()
    client = EchoAccumulator()
    for event, payload in feed:
        client.feed(payload, event)
    client.close()
    return client.outcome()


def main() -> None:
    """Answers each line."""
    PROTOCOLS[PROTOCOL.name] = PROTOCOL
    REFERENCES[PROTOCOL.name] = EchoAccumulator
    question = json.loads(sys.stdin.readline())
    if question["api"] != PROTOCOL.name or question["level"] not in ("bytes", "payloads"):
        sys.exit(f"this runner has no {question['api']} at level {question['level']}")
    print(json.dumps({"mockllm": 1, "client": {"name": "echo"}}), flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        found = as_json(outcome(case["feed"], question["level"]))
        print(json.dumps({"id": case["id"], **found}), flush=True)


if __name__ == "__main__":
    main()
