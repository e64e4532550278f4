"""A client may return values of any type. Each is a difference with a name, never an exception."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking import INVARIANTS, NOT_KEPT, Call, Outcome, Policy, Trouble, Usage
from mockllm.checking.cases.build import case
from mockllm.checking.judging.compare import judge
from mockllm.checking.judging.examination import Report
from mockllm.checking.judging.examine import examine
from mockllm.checking.judging.received import with_declared_types
from mockllm.checking.reports.check import report_text
from mockllm.play.quirks.samples import TEXT_AND_CALL
from tests.cases import for_all

CASE = case(TEXT_AND_CALL, "chat")
RIGHT = CASE.expected
CALL = RIGHT.tool_calls[0]


class RaisesInRepr:
    """A value that cannot be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class RaisesWhenRead(list[Any]):
    """A collection whose iterator raises."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no items")


class RaisesInComparisons:
    """A value that cannot be compared, hashed or tested for truth, as an array of numpy."""

    __hash__ = None  # type: ignore[assignment]  # it cannot be hashed

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value is ambiguous")

    def __bool__(self) -> bool:
        raise ValueError("the truth value is ambiguous")


def _cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def _cyclic_mapping() -> dict[str, Any]:
    cycle: dict[str, Any] = {}
    cycle["again"] = cycle
    return cycle


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    return deep


def _type_name(value: object) -> str:
    return type(value).__name__


ODD = [
    float("nan"),
    float("inf"),
    "\ud800",
    "x" * 500_000,
    b"\xff",
    object(),
    int,
    {1, 2},
    {1: "one", None: 2, ("a",): 3},
    ValueError("a value"),
    RaisesInRepr(),
    RaisesWhenRead([1]),
    RaisesInComparisons(),
    [RaisesInComparisons()],
    _cycle(),
    _cyclic_mapping(),
    _deep(),
    {"deep": _deep()},
    10**5000,
    1e308,
    range(3),
    NOT_KEPT,
    Usage(1, 2),
    Call("x", {}),
    Trouble("x"),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ANY = JSON | st.sampled_from(ODD) | st.text(st.characters(categories=["Cs"]), max_size=3)

FIELDS = [one.name for one in fields(Outcome)]
CALL_FIELDS = [one.name for one in fields(Call)]
POLICIES = [
    Policy(),
    Policy(malformed="keep", order="any", missing_id="none"),
    Policy(malformed="skip", unknown_tool="error"),
    Policy(malformed="fail", missing_id="error", usage_requested=False),
]


def _is_judged(got: Outcome) -> None:
    """Judges an outcome under several policies, and checks that each difference can be printed."""
    for policy in POLICIES:
        for difference in judge(CASE, got, policy).differences:
            assert difference.invariant in INVARIANTS
            assert len(difference.description.encode()) < 20_000


@pytest.mark.slow
@for_all("value", ODD, ids=_type_name)
@for_all("name", FIELDS)
def test_any_value_of_a_field_is_judged(name: str, value: Any) -> None:
    """No value of a field makes the kit raise: not NaN, a cycle, or a value without a `repr`."""
    _is_judged(replace(RIGHT, **{name: value}))
    _is_judged(replace(RIGHT, **{name: (value,)}))


@for_all("value", ODD, ids=_type_name)
@for_all("name", CALL_FIELDS)
def test_any_value_in_a_call_is_judged(name: str, value: Any) -> None:
    """No name, id or arguments of a call make the kit raise."""
    _is_judged(replace(RIGHT, tool_calls=(replace(CALL, **{name: value}),)))


@for_all("value", ODD, ids=_type_name)
@for_all("name", ["input", "output", "reasoning", "cached"])
def test_any_number_of_tokens_is_judged(name: str, value: Any) -> None:
    """No value in `Usage` makes the kit raise."""
    _is_judged(replace(RIGHT, usage=Usage(**{name: value})))


@pytest.mark.slow
@for_all("value", ODD, ids=_type_name)
@for_all("name", [field.name for field in fields(Trouble)])
def test_any_value_in_an_error_is_judged(name: str, value: Any) -> None:
    """No message, kind or index of an error makes the kit raise."""
    _is_judged(replace(RIGHT, errors=(replace(Trouble("an error"), **{name: value}),)))


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, ANY)))
def test_any_values_of_all_fields_are_judged(values: dict[str, Any]) -> None:
    """No combination of values makes the kit raise."""
    _is_judged(Outcome(**values))


@given(st.lists(st.builds(Call, ANY, ANY, ANY, ANY) | ANY, max_size=3))
def test_any_list_of_calls_is_judged(calls: list[Any]) -> None:
    """No list of calls makes the kit raise, whether given as it is or read by `Outcome.of`."""
    _is_judged(replace(RIGHT, tool_calls=calls))  # type: ignore[arg-type]  # any type is judged
    _is_judged(Outcome.of("Hello", tool_calls=calls, finish=RIGHT.finish))


@given(JSON)
def test_outcome_of_takes_any_json_value(value: Any) -> None:
    """`Outcome.of` raises on no JSON value; the wrong types of these are differences."""
    _is_judged(Outcome.of(reasoning=value, finish=value, usage=value, errors=value, opaque=value))


WRONG_TYPES = [
    ({"text": ["Hel", "lo"]}, "text", "list", "text-accumulates"),
    ({"text": {"type": "text"}}, "text", "dict", "text-accumulates"),
    ({"reasoning": 5}, "reasoning", "int", "text-accumulates"),
    ({"refusal": False}, "refusal", "bool", "text-accumulates"),
    ({"tool_calls": 3}, "tool_calls", "int", "arguments-concatenate"),
    ({"tool_calls": ("call",)}, "tool_calls[0]", "str", "arguments-concatenate"),
    ({"finish": ["stop"]}, "finish", "list", "finish-and-usage"),
    ({"usage": "12 tokens"}, "usage", "str", "finish-and-usage"),
    ({"usage": Usage("12")}, "usage.input", "str", "finish-and-usage"),  # type: ignore[arg-type]
    ({"errors": 7}, "errors", "int", "error-ends"),
    ({"role": 1}, "role", "int", "role-kept"),
    ({"model": {}}, "model", "dict", "answer-id-kept"),
    ({"response_id": 1.5}, "response_id", "float", "answer-id-kept"),
    ({"opaque": "signature"}, "opaque", "str", "opaque-kept"),
    ({"opaque": (None,)}, "opaque", "tuple", "opaque-kept"),
]


@for_all(("values", "field", "type_name", "invariant"), WRONG_TYPES)
def test_a_value_of_a_wrong_type_is_a_named_difference(
    values: dict[str, Any], field: str, type_name: str, invariant: str
) -> None:
    """The difference names the field, the type that it has and the one that it should have."""
    found = judge(CASE, replace(RIGHT, **values), Policy()).differences
    named = [one for one in found if one.field == field]
    assert [one.invariant for one in named] == [invariant]
    assert f"{field} is of the type {type_name}, not " in named[0].description


@pytest.mark.parametrize("name", [None, 5, ["get_weather"]])
def test_a_name_of_a_wrong_type_is_not_kept(name: Any) -> None:
    """A call whose name is no text breaks `name-kept`, and nothing else."""
    got = replace(RIGHT, tool_calls=(replace(CALL, name=name),))
    assert {difference.invariant for difference in judge(CASE, got, Policy()).differences} == {
        "name-kept"
    }


@pytest.mark.parametrize("value", [float("nan"), object(), _cycle(), 5, True, ["Paris"], "Paris"])
def test_arguments_of_any_type_are_wrong_arguments(value: Any) -> None:
    """Arguments that are not the expected object break `arguments-concatenate`."""
    got = replace(RIGHT, tool_calls=(replace(CALL, arguments=value),))
    found = judge(CASE, got, Policy()).differences
    assert [one.invariant for one in found] == ["arguments-concatenate"]


@pytest.mark.parametrize(("value", "other"), [(1, True), (0, False), (0, None), ("1", 1)])
def test_values_that_python_compares_as_equal_differ(value: Any, other: Any) -> None:
    """`1` and `true` are two JSON values."""
    expected = replace(RIGHT, tool_calls=(Call(CALL.name, {"city": value}, CALL.id),))
    got = replace(RIGHT, tool_calls=(Call(CALL.name, {"city": other}, CALL.id),))
    found = judge(replace(CASE, expected=expected), got, Policy()).differences
    assert [one.invariant for one in found] == ["arguments-concatenate"]


def test_a_wrong_type_hides_no_other_difference() -> None:
    """Each field of a wrong type, and each wrong value beside it, is a difference."""
    got = replace(
        RIGHT,
        text=["Hello"],  # type: ignore[arg-type]  # the wrong type
        tool_calls=(replace(CALL, id="call_other"),),
        usage=Usage(1, 1),
    )
    found = {difference.subject for difference in judge(CASE, got, Policy()).differences}
    assert found == {"text", "tool_calls", "usage"}


def test_values_of_the_declared_types_stay_as_they_are() -> None:
    """An outcome with the declared types is compared as it is."""
    assert with_declared_types(RIGHT) == (RIGHT, [])


def test_a_lone_surrogate_can_be_reported() -> None:
    """Text that UTF-8 cannot encode is escaped in the report, so that every output can print it."""

    class Surrogates:
        def feed(self, payload: Any, event: str | None = None) -> None: ...

        def outcome(self) -> Outcome:
            return Outcome.of("\ud83d", tool_calls=[("\udc4b", "\ud83d", {"\ud83d": "\udc4b"})])

    report: Report = examine(Surrogates, [CASE])
    assert not report.good
    assert "\\ud83d" in report_text(report).encode().decode()
