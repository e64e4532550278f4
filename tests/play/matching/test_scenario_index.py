"""The index finds exactly the scenarios that a search one by one would find."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.matching.index import ScenarioIndex, TokenOrigin, _PlainIndex, mint_token
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Match, Scenario, TextCondition, TurnSpec
from mockllm.scenario.part_model import TextPart
from tests.cases import for_all

TURNS = (TurnSpec(reply=(TextPart("x"),)),)


def with_match(name: str, match: Match) -> Scenario:
    return Scenario(name, TURNS, match=match)


def contains(needles: Iterable[str]) -> ScenarioIndex:
    conditions = [TextCondition("contains", needle) for needle in needles]
    return ScenarioIndex(
        with_match(f"s{n}", Match(user=condition)) for n, condition in enumerate(conditions)
    )


def plain(needles: Iterable[tuple[str, int]]) -> _PlainIndex:
    return _PlainIndex([(TextCondition("contains", needle), n) for needle, n in needles])


def found(index: ScenarioIndex, text: str) -> list[str]:
    return [scenario.name for scenario in index.by_user_text(text)]


LETTERS = "ab \n"
needles = st.lists(st.text(LETTERS, min_size=1, max_size=20), min_size=1, max_size=8, unique=True)


@given(needles, st.text(LETTERS, max_size=30), st.data())
def test_no_needle_is_missed_and_none_invented(
    needles: list[str], text: str, data: st.DataObject
) -> None:
    """Whether a text is searched or split depends on the number of needles; the result does not."""
    inside = data.draw(st.sampled_from(needles))
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + inside + text[at:]
    numbered = [(needle, n) for n, needle in enumerate(needles)]
    right = [n for needle, n in numbered if needle in text]
    assert sorted(plain(numbered).search(text)) == right
    many = numbered + [(f"never{n}", n) for n in range(1000, 1500)]
    assert sorted(set(plain(many).search(text))) == right


WORDS = [f"the word{n} here" for n in range(40)]
BEGINNINGS = [f"x longbeginning{n}" for n in range(40)]
GRAMS = [f"nospace{n}atall" for n in range(40)]
SHORT = ["q1", "zz9"]


@for_all(
    ("text", "right"),
    [
        ("say the word7 here now", ["the word7 here"]),
        ("say the word7", []),
        ("the word7 here", ["the word7 here"]),
        ("some x longbeginning3 and", ["x longbeginning3"]),
        ("x longbeginning33", ["x longbeginning3", "x longbeginning33"]),
        ("-nospace5atall-", ["nospace5atall"]),
        ("q1", ["q1"]),
        ("azz9", ["zz9"]),
        ("", []),
        ("the", []),
    ],
)
def test_each_kind_of_key(text: str, right: list[str]) -> None:
    """Needles are found by any of their parts, short ones by the whole."""
    numbered = [(needle, n) for n, needle in enumerate([*WORDS, *BEGINNINGS, *GRAMS, *SHORT])]
    index = plain(numbered)
    assert index._sizes == [2, 3, 8]
    assert len(text) * 4 <= 2 * len(numbered)
    assert [numbered[n][0] for n in sorted(index.search(text))] == right


def test_a_needle_is_filed_under_its_rarest_part() -> None:
    """A part that all needles share would let each text find them all."""
    index = plain((f"a shared rare{n} z", n) for n in range(5))
    assert [len(needles) for needles in index._by_ngram.values()] == [1] * 5


def test_scenarios_come_in_their_order_and_once() -> None:
    """Whatever the kind of their condition, and however often it holds."""
    index = ScenarioIndex(
        loads(
            """
scenario: z
match: {user: {regex: 'b+'}}
turns: [{reply: {text: x}}]
---
scenario: y
match: {user: {equals: ab}}
turns: [{reply: {text: x}}]
---
scenario: x
match: {user: a}
turns: [{reply: {text: x}}]
---
scenario: other
match: {user: c}
turns: [{reply: {text: x}}]
"""
        )
    )
    assert found(index, "ab") == ["z", "y", "x"]
    assert found(index, "abab") == ["z", "x"]
    assert found(index, "c") == ["other"]


def test_what_is_remembered_of_texts_is_bounded() -> None:
    """2,048 texts of at most 4,096 characters; what is found stays right when all are forgotten."""
    index = contains([f"needle {number}." for number in range(20)])
    for number in range(3000):
        text = f"text {number} with needle {number % 30}."
        expected = [f"s{number % 30}"] if number % 30 < 20 else []
        assert found(index, text) == found(index, text) == expected
    found(index, "needle 1. " + "x" * 4096)
    assert 0 < len(index._cache) <= 2048
    assert max(map(len, index._cache)) <= 4096


MODELS = ScenarioIndex(
    loads(
        """
scenario: exact
match: {model: house}
turns: [{reply: {text: x}}]
---
scenario: glob
match: {model: 'gpt-?'}
turns: [{reply: {text: x}}]
---
scenario: any
match: {system: poet}
turns: [{reply: {text: x}}]
---
scenario: with-user
match: {user: u, model: private}
turns: [{reply: {text: x}}]
---
scenario: unlisted
turns: [{reply: {text: x}}]
---
scenario: fallback
match: any
turns: [{reply: {text: x}, repeat: true}]
"""
    )
)


def test_scenarios_by_model() -> None:
    """Without `match.user`, those with this very model come first; globs are tried later."""
    assert [one.name for one in MODELS.by_model("house")] == ["exact", "glob", "any"]
    assert [one.name for one in MODELS.by_model("other")] == ["glob", "any"]
    assert [fallback.name for fallback in MODELS.fallbacks] == ["fallback"]


@pytest.mark.parametrize("glob", ["a*", "a?", "[ab]"])
def test_a_glob_is_no_name_of_a_model(glob: str) -> None:
    """Any of its characters makes a glob."""
    index = ScenarioIndex([with_match("s", Match(model=glob))])
    assert [one.name for one in index.by_model("b")] == ["s"]
    assert index.models() == (("mock/s",), True)


def test_the_names_of_models() -> None:
    """Every scenario is one, every model that a scenario names is, and any other may do."""
    names, any_other = MODELS.models()
    own = [f"mock/{scenario.name}" for scenario in MODELS.scenarios]
    assert names == tuple(sorted([*own, "house", "private"]))
    assert any_other
    index = ScenarioIndex([with_match("s", Match(model="house")), Scenario("unlisted", TURNS)])
    assert index.models() == (("house", "mock/s", "mock/unlisted"), False)
    assert ScenarioIndex([with_match("s", Match(system=None))]).models() == (("mock/s",), True)


def test_the_headers_that_decide() -> None:
    """Those of all conditions and the one that names a scenario, each once."""
    text = (
        "scenario: {0}\nmatch: {{headers: {{X-B: {0}, x-a: y}}}}\nturns: [{{reply: {{text: x}}}}]\n"
    )
    index = ScenarioIndex(loads(f"{text.format('one')}---\n{text.format('two')}"))
    assert index.headers == ("x-a", "x-b", "x-mockllm-scenario")


# Tokens


CHAT = MODELS.by_name["exact"]


@pytest.mark.parametrize("position", [0, 1, 255, 0xFFFFFF])
def test_a_token_is_read_back(position: int) -> None:
    """40 hexadecimal digits hold the scenario and the position, six digits of it."""
    token = mint_token(CHAT, position)
    assert len(token) == 40
    assert token[16:22] == f"{position:06x}"
    assert MODELS.by_token(token) == TokenOrigin(CHAT, position, None)


def test_a_token_never_changes() -> None:
    """It is part of ids that clients keep from one run to the next."""
    assert mint_token(CHAT, 1) == "2c560c5647db009d000001d0dbb5017c0aca8cf2"


@pytest.mark.parametrize("at", [0, 15, 16, 21, 22, 39])
def test_a_token_with_another_digit_is_not_ours(at: int) -> None:
    """Each part is checked: an id of another server is never read as one of ours."""
    token = mint_token(CHAT, 1)
    for digit in "01fgx":
        changed = token[:at] + digit + token[at + 1 :]
        known = TokenOrigin(CHAT, 1, None) if changed == token else None
        assert MODELS.by_token(changed) == known
    assert MODELS.by_token(token + "0") is None
    assert MODELS.by_token(token[:-1]) is None
    assert MODELS.by_token("") is None


def test_a_token_depends_on_name_seed_and_position() -> None:
    """Two scenarios, two seeds and two positions have different tokens."""
    seeded = loads("scenario: exact\nseed: other\nturns: [{reply: {text: x}}]")[0]
    one, other = mint_token(CHAT, 1), mint_token(seeded, 1)
    assert (one[:22], one[22:] == other[22:]) == (other[:22], False)
    assert mint_token(MODELS.by_name["glob"], 1)[:16] != one[:16]
