"""The JSON Schema offers the faults that can be played, where they can be played, and no others."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

import mockllm.scenario
from mockllm import loads
from mockllm.core.errors import ScenarioError
from mockllm.scenario.reading.faults import FAULTS, HANDSHAKE, OF_SERVERS

SCHEMA = json.loads((Path(mockllm.scenario.__file__).parent / "schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
NEEDED = {"cut": {"after": "1 event"}, "drip": {"rate": 5}, "burst": {"pause": "1s"}}
"""The parameters of the faults that need some."""

REPLY = {"reply": {"text": "abc"}}
PLACES = {
    "turn": lambda fault: {**REPLY, "fault": fault},
    "http": lambda fault: {"http": {"status": 500}, "fault": fault},
    "attempt": lambda fault: {**REPLY, "attempts": [{"fault": fault}]},
    "when": lambda fault: {**REPLY, "when": [{"api": "responses", "fault": fault}]},
    "route": lambda fault: {"answer": {"json": {}}, "fault": fault},
}


def loaded(document):
    try:
        loads(yaml.safe_dump(document))
    except ScenarioError:
        return False
    return True


@pytest.mark.parametrize("place", PLACES)
def test_what_is_offered_is_playable(place):
    """At each place, the schema accepts a fault exactly where the loader does: those of connections
    nowhere, and none in the turn of a route."""
    offered = set()
    for name in [*FAULTS, "nothing"]:
        for fault in (name, {name: NEEDED.get(name)}, {name: NEEDED.get(name, {})}):
            document = {"scenario": "one", "turns": [PLACES[place](fault)]}
            if place == "route":
                document["route"] = "GET /x"
            accepted = VALIDATOR.is_valid(document)
            assert accepted == loaded(document), (place, fault)
            offered |= {name} if accepted else set()
    assert offered == (set() if place == "route" else FAULTS.keys() - OF_SERVERS - {HANDSHAKE})
