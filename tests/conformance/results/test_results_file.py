"""Results files: what is written is read again, and damage is reported with what to do."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from mockllm.conformance.results import CaseResult, Client, QuirkInfo, Results, Smallest, Stream
from mockllm.conformance.results.file import (
    dump_results,
    load_results,
    read_results,
    write_results,
)
from mockllm.core.errors import UsageError
from tests.cases import for_all
from tests.conformance.results import generated
from tests.conformance.schemas import results_schema

SCHEMA = Draft202012Validator(results_schema())
CLIENT = Client("demo", "1.0", "python")


def one(*cases: CaseResult) -> Results:
    return Results(CLIENT, "chat", "bytes", "1.0", "2026-01-01", cases=cases)


def with_stream(*writes: bytes) -> Results:
    return one(CaseResult("chat/one", "plain", "right", stream=Stream(writes)))


def test_the_schema_has_each_field() -> None:
    """The schema is valid, and names exactly the fields that files have."""
    Draft202012Validator.check_schema(SCHEMA.schema)
    defs = SCHEMA.schema["$defs"]
    pairs = [(Client, defs["client"]), (CaseResult, defs["case"]), (QuirkInfo, defs["quirk"])]
    pairs += [(Smallest, defs["smallest"]), (Results, SCHEMA.schema), (Stream, defs["stream"])]
    for kind, schema in pairs:
        names = {field.name for field in fields(kind)}
        assert set(schema["properties"]) - {"gzip", "sizes", "mockllm_results"} == names


@given(generated.results)
def test_what_is_dumped_is_loaded(results: Results) -> None:
    """`load` is the inverse of `dump`, for any bytes, cuts and outcomes; the schema agrees."""
    text = dump_results(results)
    assert load_results(text, "x.json") == results
    SCHEMA.validate(json.loads(text))


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    """Folders above the file are made, and no other file is left beside it."""
    file = tmp_path / "new" / "demo-chat.json"
    write_results(with_stream(b"data: 1\n\n"), file)
    assert read_results(file) == with_stream(b"data: 1\n\n")
    assert [path.name for path in file.parent.iterdir()] == ["demo-chat.json"]


def test_short_text_can_be_read_by_people() -> None:
    """A short stream is text in the file, a write a string; other streams are compressed."""
    assert '"writes": ["data: é\\n", "\\n"]' in dump_results(
        with_stream("data: é\n".encode(), b"\n")
    )
    assert '"gzip"' in dump_results(with_stream("é".encode()[:1], "é".encode()[1:]))
    assert '"gzip"' in dump_results(with_stream(b"x" * 4097))


def test_a_long_stream_stays_small() -> None:
    """A stream of 300 KB, in writes of one byte, takes a few kilobytes."""
    results = with_stream(*[bytes([value]) for value in b"data: {}\n\n" * 30_000])
    assert len(dump_results(results)) < 5_000
    assert load_results(dump_results(results), "x") == results


def test_lone_surrogates_are_kept() -> None:
    """Half of a UTF-16 pair, which clients return that cut strings, is a value, not an error."""
    results = one(CaseResult("chat/one", "plain", "wrong", actual={"text": "a\ud83d"}))
    text = dump_results(results)
    text.encode()
    assert load_results(text, "x") == results


def test_empty_fields_are_left_out_and_values_in_outcomes_are_kept() -> None:
    """Only defaults of results are left out; null and "" in an outcome are values."""
    results = one(CaseResult("chat/one", "plain", "right", actual={"text": "", "finish": None}))
    case = json.loads(dump_results(results))["cases"][0]
    assert case == {
        "case": "chat/one",
        "group": "plain",
        "verdict": "right",
        "actual": {"text": "", "finish": None},
    }


def test_a_file_has_one_case_a_line() -> None:
    """So that a comparison of two files shows the cases that changed."""
    text = dump_results(one(*(CaseResult(f"chat/{n}", "plain", "right") for n in range(3))))
    assert sum('"case"' in line for line in text.splitlines()) == 3


def _changed(**fields: object) -> str:
    return json.dumps({**json.loads(dump_results(with_stream(b"x"))), **fields})


def _with_case(**fields: object) -> str:
    return _changed(cases=[{"case": "c", "group": "g", "verdict": "right", **fields}])


@for_all(
    ("text", "message"),
    [
        ("{", "x.json is no results file: not JSON"),
        (b"\xff", "x.json is no results file: not JSON"),
        ("[]", "it has no field mockllm_results"),
        ("{}", "it has no field mockllm_results"),
        (_changed(mockllm_results=2), "has format 2 of results files and this mockllm reads 1"),
        (_changed(api=1), "x.json is damaged: api: must be a text, not 1"),
        (_changed(api=None), "api: must be a text, not None"),
        (_changed(news=1), "news: there is no such field, only mockllm_results, client"),
        (_changed(client={}), "client.name: is missing"),
        (_changed(cases={}), "cases: must be a list"),
        (_with_case(verdict="good"), "cases[0].verdict: must be one of right, tolerated,"),
        (_with_case(cost="much"), "cases[0].cost: must be one of wrong call,"),
        (_with_case(stream={}), "cases[0].stream: needs writes or gzip and sizes"),
        (_with_case(stream={"writes": [1]}), "cases[0].stream.writes[0]: must be a text, not 1"),
        (_with_case(stream={"gzip": "?", "sizes": [[1, 1]]}), "stream: gzip cannot be read"),
        (_with_case(stream={"gzip": "", "sizes": [[1, 1]]}), "gzip has another length"),
        (_with_case(stream={"gzip": "", "sizes": [[0, 10**15]]}), "more than 10,000,000 writes"),
        (_with_case(stream={"gzip": "", "sizes": [[1]]}), "sizes[0]: must be a list of 2"),
        (_with_case(stream={"writes": [], "status": True}), "status: must be a whole number"),
        (_with_case(stream={"writes": [], "headers": [["a"]]}), "headers[0]: must be a list of 2"),
    ],
)
def test_damage_is_reported(text: str | bytes, message: str) -> None:
    """The message has the file, the field, and what to do next."""
    with pytest.raises(UsageError) as caught:
        load_results(text, "x.json")
    assert message in str(caught.value)
    assert "mockllm check" in str(caught.value) or "pip install" in str(caught.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """So is a place where no file can be written."""
    with pytest.raises(UsageError, match=r"none\.json: No such file"):
        read_results(tmp_path / "none.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_results(one(), tmp_path / "file" / "x.json")


def test_a_failed_write_leaves_the_former_file(tmp_path: Path) -> None:
    """A value that is no JSON is an error before the file is touched."""
    file = tmp_path / "x.json"
    write_results(one(), file)
    with pytest.raises(ValueError, match="JSON"):
        write_results(one(CaseResult("c", "g", "right", actual={"x": float("nan")})), file)
    assert read_results(file) == one()
    assert len(list(tmp_path.iterdir())) == 1
