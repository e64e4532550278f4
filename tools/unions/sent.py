"""The items that mockllm's encoders send: for the kit's scenarios and those of `probes/`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from mockllm.checking.cases.case import MODEL
from mockllm.checking.cases.scenarios import singles
from mockllm.checking.material import kit_scenarios
from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.client_requests import client_target, first_body, user_text
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import frame_apis
from mockllm.wire.protocols import PROTOCOLS
from tools.unions.roots import items_of

PROBES = Path(__file__).parent / "probes"


def probe_scenarios(api: str) -> tuple[Scenario, ...]:
    """The scenarios of `probes/<api>.yaml`."""
    path = PROBES / f"{api}.yaml"
    return loads(path.read_text(encoding="utf-8"), path.name) if path.is_file() else ()


def _requests(api: str) -> list[dict[str, Any]]:
    """The fields of requests that ask for more: `probes/requests.yaml`."""
    more = yaml.safe_load((PROBES / "requests.yaml").read_text(encoding="utf-8"))
    return [{}, *more.get(api, [])]


def _sent_values(api: str) -> Iterator[tuple[Any, bool]]:
    """The events and bodies that the encoders of an API send, and whether each is an event; turns
    with frames that the scenario writes out are left out."""
    kit: list[tuple[Scenario, dict[str, Any]]] = [(scenario, {}) for scenario in kit_scenarios(api)]
    asked = [(probe, fields) for probe in probe_scenarios(api) for fields in _requests(api)]
    for scenario, fields in (*kit, *asked):
        for single in singles(scenario, api):
            if single.plays_over(api) and not frame_apis(single.turns[0].for_api(api).reply):
                yield from _answers(api, single, fields)


def _answers(api: str, scenario: Scenario, fields: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    protocol = PROTOCOLS[api]
    written = first_body(protocol, MODEL, user_text(scenario), scenario.tools)
    body = {**written, **protocol.client.usage, **fields}
    target: Target = client_target(protocol, MODEL)
    for stream in (True, False):
        request = replace(protocol.parse(body, target, False), stream=stream)
        try:
            answer = Replayer().answer(Selection(scenario, 0, 0), request, protocol)
        except RequestError:
            continue  # an API without bodies
        if answer.status != 200:
            continue
        data = b"".join(answer.data)
        if not stream:
            yield json.loads(data), False
            continue
        for frame in protocol.usual.readable(data):
            if frame.data is not None and frame.data not in ("[DONE]", protocol.end_data):
                yield json.loads(frame.data), True


def sent_items(api: str) -> set[str]:
    """The items that the encoders of an API send; a `+` is before those that the SDK has not."""
    values = _sent_values(api)
    return {item for value, streamed in values for item in items_of(api, value, streamed=streamed)}
