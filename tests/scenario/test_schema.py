"""The JSON Schema for editors accepts the same documents as the loader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

import mockllm.scenario
from mockllm.play.replay.loading import VOCABULARY
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Scenario
from mockllm.scenario.reading.nodes import documents
from mockllm.scenario.reading.tables import TABLES
from mockllm.scenario.reading.values import Findings, json_value
from tests.cases import for_all
from tests.scenario.bad_heads import HEADS
from tests.scenario.bad_parts import PARTS
from tests.scenario.bad_routes import ROUTE_SEMANTICS, ROUTES
from tests.scenario.bad_semantics import SEMANTICS as MODEL_SEMANTICS
from tests.scenario.bad_turns import TURNS
from tests.scenario.strategies import scenarios

SHAPE = HEADS + TURNS + PARTS + ROUTES
SEMANTICS = ROUTE_SEMANTICS + MODEL_SEMANTICS
SCHEMA = json.loads((Path(mockllm.scenario.__file__).parent / "schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
DEFINITIONS = {"scenario": SCHEMA, **SCHEMA["$defs"]}
SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))


def accepted(text: str) -> bool:
    """Whether the schema accepts all documents of a text."""
    return all(
        VALIDATOR.is_valid(json_value(document.root, Findings(VOCABULARY)))
        for document in documents(text, "x")
    )


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """All mappings inside a schema."""
    if isinstance(schema, dict):
        yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


def test_the_schema_is_one() -> None:
    """The schema itself is valid."""
    Draft202012Validator.check_schema(SCHEMA)


def test_definitions_are_all_used() -> None:
    """The loader reads every mapping that the schema defines, with no key of its own, and each
    definition is used."""
    mappings = {name: one for name, one in DEFINITIONS.items() if "properties" in one}
    assert mappings.keys() == TABLES.keys()
    assert all(mapping["additionalProperties"] is False for mapping in mappings.values())
    referred = {one["$ref"].removeprefix("#/$defs/") for one in objects(SCHEMA) if "$ref" in one}
    assert referred == set(SCHEMA["$defs"])


@for_all("name", DEFINITIONS)
def test_everything_is_described(name: str) -> None:
    """Each mapping and each key has a description for editors."""
    definition = DEFINITIONS[name]
    assert definition["title"]
    assert definition["description"].endswith(".")
    for key in definition.get("properties", {}).values():
        assert key["description"].endswith(".")


def test_examples_are_examples() -> None:
    """Examples in the schema are valid."""
    for schema in objects(SCHEMA):
        for example in schema.get("examples", ()) if "description" in schema else ():
            assert VALIDATOR.evolve(schema={**schema, "$defs": SCHEMA["$defs"]}).is_valid(example)


@for_all("text", [row[1] for row in SHAPE], ids=[row[0] for row in SHAPE])
def test_bad_shapes_are_refused(text: str) -> None:
    """The schema refuses every shape that the loader refuses."""
    assert not accepted(text)


@for_all("text", [row[1] for row in SEMANTICS[:-1]], ids=[row[0] for row in SEMANTICS[:-1]])
def test_contradictions_are_beyond_a_schema(text: str) -> None:
    """The schema accepts documents whose problem involves several values."""
    assert accepted(text)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=20)
@given(scenarios())
def test_dumped_scenarios_are_accepted(scenario: Scenario) -> None:
    """The dump of every scenario that can be loaded is valid."""
    assert accepted(dump(scenario))


@pytest.mark.skipif(not SHIPPED, reason="the shipped scenarios are not beside the tests")
@for_all("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_are_accepted(path: Path) -> None:
    """Every shipped scenario satisfies the schema."""
    assert accepted(path.read_text())
