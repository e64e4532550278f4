"""Where secrets are found: in plain text, in encodings, in documents, across fragments."""

from __future__ import annotations

import base64
import json

import pytest

from mockllm.record.redaction.find.finder import Finder
from mockllm.record.redaction.find.spans import Found, Spans
from mockllm.record.redaction.rules import compiled_paths, compiled_patterns

KEY = "sk-proj-" + "Ab3dEf6hIj" * 4
OTHER = "gsk_" + "Zy9xWv8uTs" * 3


def found(text: str, finder: Finder | None = None) -> list[tuple[str, list[str]]]:
    """The kind of each secret, and its parts as the text has them; the first kind of each place."""
    places = {one.parts: one.kind for one in reversed((finder or Finder()).find(text))}
    order = dict.fromkeys(one.parts for one in (finder or Finder()).find(text))
    return [(places[parts], [text[slice(*part)] for part in parts]) for parts in order]


def test_secrets_come_in_the_order_of_the_text() -> None:
    """Of those that begin at the same place the longest comes first."""
    text = f"{OTHER} and eve@corp.io and {KEY}"
    assert found(text) == [
        ("Groq key", [OTHER]),
        ("e-mail address", ["eve@corp.io"]),
        ("API key", [KEY]),
    ]
    assert [one.secret for one in Finder().find(f"{text} ")] == [OTHER, "eve@corp.io", KEY]


@pytest.mark.parametrize("text", ["", "abc", "a@b.c", "password", "pass1word"])
def test_short_texts_hold_none(text: str) -> None:
    """Nothing of five characters, and no word, is a secret by its looks."""
    assert found(text) == []


def test_a_short_secret_that_is_known() -> None:
    """Then no text is too short to be searched."""
    assert found("pass1word", Finder(known=["pass1word"])) == [("known secret", ["pass1word"])]
    assert found("my pass1word", Finder(known=["pass1word"])) == [("known secret", ["pass1word"])]
    assert found("xy", Finder(compiled_patterns(["xy"]))) == [("pattern", ["xy"])]


def test_patterns_of_a_user() -> None:
    """All of a match, or its first group; an empty group is no secret."""
    finder = Finder(compiled_patterns(["id-([0-9]*)", "zz+"]))
    assert found("id-12 id- zzz", finder) == [("pattern", ["12"]), ("pattern", ["zzz"])]


def test_known_secrets() -> None:
    """In any text, and parts of them; placeholders are never known."""
    secret = "no-one-knows-what-this-is"
    finder = Finder(known=[secret, "REDACTED-1xxxxxxxxxxxx"])
    assert found(f"a {secret[3:18]} b", finder) == [("known secret", [secret[3:18]])]
    assert [one.secret for one in finder.find(f"a {secret[3:18]} b")] == [secret]
    assert found("REDACTED-1xxxxxxxxxxxx", finder) == []
    again = finder.knowing(["something-else-entirely"])
    assert found(secret, again) == []
    assert found("something-else-entirely", again) != []


def test_other_options_stay_with_other_known_secrets() -> None:
    """Patterns and paths are the same."""
    finder = Finder(compiled_patterns(["zz+"]), compiled_paths(["$.a"]))
    finder = finder.knowing(["no-one-knows-what-this-is"])
    assert [kind for kind, _ in found('{"a": "x", "b": "zz"}', finder)] == ["JSON path", "pattern"]


# Encodings


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (json.dumps(json.dumps(f"a {KEY}\n")), "API key"),
        (f"x={KEY.replace('-', '%2D')}&y", "API key"),
        (f"see\\n{KEY}\\n", "API key"),
        (base64.b64encode(f"user: {KEY} x".encode()).decode(), "API key"),
        (f"x {base64.b64encode(b'to eve@corp.io now').decode()} y", "e-mail address"),
    ],
)
def test_a_secret_in_an_encoding(written: str, kind: str) -> None:
    """Escapes of JSON and of URLs, and base64; what is found is the secret without them."""
    (one,) = Finder().find(written)
    assert one.kind == kind
    assert list(one.secrets()) == [KEY if kind == "API key" else "eve@corp.io"]


def test_a_secret_in_base64_has_its_run() -> None:
    """Where it is in base64, and what is in there."""
    written = base64.b64encode(f"user: {KEY} x".encode()).decode()
    (one,) = Finder().find(f"({written})")
    assert (one.secret, one.parts, one.fixed) == ("", ((1, 1 + len(written)),), "")
    assert one.inner is not None
    run, inner = one.inner
    assert run.text == f"user: {KEY} x"
    assert [found.parts for found in inner] == [((6, 6 + len(KEY)),)]


def test_a_secret_after_an_escape_begins_after_it() -> None:
    r"""The `n` of `\n` is no part of a key."""
    text = rf"a\n{KEY}\tb"
    assert found(text) == [("API key", [KEY])]
    assert found(rf"\\u0073{KEY[1:]} x")[0][0] == "API key"


def test_a_secret_is_found_at_some_depth() -> None:
    """Eight encodings within each other, and no more."""
    text = "a eve@corp.io!\n"
    for depth in range(12):
        text = base64.b64encode(text.encode()).decode()
        assert (found(text) != []) == (depth < 8), depth


def test_a_secret_is_found_once() -> None:
    """Not in an encoding and as plain text too."""
    assert found(rf'{{"a": "x {KEY}\n"}}') == [("API key", [KEY])]
    assert [one.kind for one in Finder().find(rf"\"{KEY}\" ")] == ["API key"]


# Placeholders


@pytest.mark.parametrize(
    "text",
    [
        "REDACTED-1",
        'api_key = "sk-REDACTED-1xxxxxxx"',
        "Bearer REDACTED-12",
        "to hidden-1@mail.example",
        "x@hidden-1@mail.example",
        '{"password": "REDACTED-1"}',
        "?key=REDACTED-1",
        "a.hidden-1@mail.example",
    ],
)
def test_a_placeholder_is_no_secret(text: str) -> None:
    """Whatever stands around it."""
    assert found(text) == []


def test_a_secret_beside_a_placeholder() -> None:
    """What is more than a placeholder is one."""
    assert found("password=abcdef12REDACTED-1") == [("password or key", ["abcdef12REDACTED-1"])]
    assert found("password=abc12REDACTED-1") == []
    assert found(f"REDACTED-1 {KEY}") == [("API key", [KEY])]


# Documents


def test_fields_with_the_names_of_secrets() -> None:
    """The whole value; a field's name is in the kind."""
    text = '{"password": "hunter22", "note": "hunter22", "key": "abcdefgh12345678"}'
    assert found(text) == [
        ("field 'password'", ["hunter22"]),
        ("field 'key'", ["abcdefgh12345678"]),
    ]


def test_paths_of_a_user() -> None:
    """Every value below them, texts and numbers; zero and nothing stay."""
    finder = Finder(paths=compiled_paths(["$.a", "$..id"]))
    text = '{"a": {"x": "one", "n": 12.5, "z": 0, "e": ""}, "b": [{"id": 7}], "c": "REDACTED-1"}'
    assert found(text, finder) == [
        ("JSON path", ["one"]),
        ("JSON path", ["12.5"]),
        ("JSON path", ["7"]),
    ]
    assert [one.fixed for one in finder.find(text)] == ["", "0", "0"]
    assert found('{"a": "REDACTED-1"}', finder) == []
    assert found('{"a": true, "b": null}', finder) == []


def test_numbers_that_a_pattern_finds() -> None:
    """They become zero, or the document would be no JSON."""
    finder = Finder(compiled_patterns(["[0-9]{4}"]))
    text = '{"n": 12345, "m": 123, "s": "a 12345"}'
    assert found(text, finder) == [("pattern", ["12345"]), ("pattern", ["1234"])]
    assert [one.fixed for one in finder.find(text)] == ["0", ""]


def test_names_that_hold_secrets() -> None:
    """A key may be the name of a field."""
    assert found(f'{{"{KEY}": 1}}') == [("API key", [KEY])]


def event(**fields: object) -> str:
    return f"data: {json.dumps(fields)}\n\n"


def test_a_secret_across_the_fragments_of_a_stream() -> None:
    """Its parts are where the fragments are."""
    text = event(delta=f"a {KEY[:20]}") + event(n=1) + event(delta=f"{KEY[20:]} b")
    assert found(text) == [("API key", [KEY[:20], KEY[20:]])]
    assert [one.secret for one in Finder().find(text)] == [KEY]


def test_a_fragment_means_nothing_alone() -> None:
    """What it seems to be is judged from all fragments of its channel."""
    text = event(delta="mail eve@corp.co") + event(delta="m or not")
    assert found(text) == [("e-mail address", ["eve@corp.co", "m"])]


def test_items_that_are_mixed() -> None:
    """Fragments of two items are not joined with each other."""
    text = event(index=0, delta=KEY[:24]) + event(index=1, delta=OTHER[:20])
    text += event(index=0, delta=KEY[24:]) + event(index=1, delta=OTHER[20:])
    assert found(text) == [
        ("API key", [KEY[:24], KEY[24:]]),
        ("Groq key", [OTHER[:20], OTHER[20:]]),
    ]


def test_items_that_are_named_in_the_first_event_only() -> None:
    """The fragments of a path are joined as a guess."""
    text = event(item_id="i", delta=KEY[:9]) + event(delta=KEY[9:])
    assert found(text) == [("API key", [KEY[:9], KEY[9:]])]


@pytest.mark.parametrize("first", [17, 20, 34, 44])
def test_a_key_that_goes_on_in_an_item_without_a_name(first: int) -> None:
    """The first fragment, which names the item, is long enough for a key of its own; the rest of
    the key does not stay, and the placeholder is that of all of it."""
    text = event(item_id="i", delta=f"see {KEY[:first]}") + event(delta=f"{KEY[first:]} x")
    assert found(text) == [("API key", [KEY[:first], KEY[first:]])]
    assert [one.secret for one in Finder().find(text)] == [KEY]


def test_a_key_at_the_end_of_a_named_item() -> None:
    """It does not go on in another item that has a name too."""
    text = event(index=0, delta=f"see {KEY}") + event(index=1, delta="hello")
    assert found(text) == [("API key", [KEY])]


def test_text_between_events_is_searched() -> None:
    """Comments, and data that are no JSON."""
    text = f": {OTHER}\n\n" + event(a="b") + f"data: {KEY}\n\n"
    assert found(text) == [("Groq key", [OTHER]), ("API key", [KEY])]


def test_a_secret_with_escapes_in_a_document() -> None:
    """Its place has the escapes, the secret has none."""
    text = '{"a": "eve\\u0040corp.io\\n", "password": "hunt\\"er22"}'
    assert found(text) == [
        ("e-mail address", ["eve\\u0040corp.io"]),
        ("field 'password'", ['hunt\\"er22']),
    ]
    secrets = [one.secret for one in Finder().find(text)]
    assert secrets == ["eve@corp.io", 'hunt"er22']


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (((0, 3),), ((3, 5),), False),
        (((0, 3),), ((2, 5),), True),
        (((3, 5),), ((0, 3),), False),
        (((3, 5),), ((0, 4),), True),
        (((0, 9),), ((3, 4),), True),
        (((3, 4),), ((0, 9),), True),
        (((0, 1), (8, 9)), ((2, 3), (8, 12)), True),
        (((0, 1), (8, 9)), ((2, 3), (9, 12)), False),
    ],
)
def test_what_overlaps(
    one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...], both: bool
) -> None:
    """Any part with any other; what only touches does not."""
    assert Spans([Found("", "", other)]).overlap(Found("", "", one)) == both
