"""Paths in JSON: what they find, and which cannot be read."""

from __future__ import annotations

import pytest

from mockllm.core.errors import UsageError
from mockllm.record.redaction.rules import compiled_paths
from tests.cases import for_all


def finds(path: str, *steps: str | int) -> bool:
    """Whether a path finds the value to which these steps lead."""
    pattern = compiled_paths([path])
    assert pattern is not None
    return pattern.search("".join(f"\x1f{step}" for step in steps)) is not None


@for_all(
    ("path", "found", "not_found"),
    [
        ("$.user", [("user",), ("user", "name"), ("user", 0)], [("users",), ("a", "user")]),
        ("$.a.b", [("a", "b"), ("a", "b", "c")], [("a",), ("b",), ("a", 0, "b")]),
        ("$.a-b", [("a-b",)], [("a",)]),
        ("$.a[0]", [("a", 0), ("a", 0, "b")], [("a", 1), ("a", 10), ("a",)]),
        ("$[0]", [(0,)], [(1,), ("a", 0)]),
        ("$.a[*]", [("a", 0), ("a", 1), ("a", "b")], [("a",), ("b", 0)]),
        ("$.a.*", [("a", 0), ("a", "b")], [("a",)]),
        ("$.*.b", [("a", "b"), (0, "b")], [("b",), ("a", "c", "b")]),
        ("$..b", [("b",), ("a", "b"), ("a", 0, "b", "c")], [("a",), ("ab",), ("bc",)]),
        ("$..a.b", [("a", "b"), ("x", "y", "a", "b")], [("a", "x", "b")]),
        ("$.a..b", [("a", "b"), ("a", "x", "b")], [("b",), ("x", "a", "b")]),
        ("$..[0]", [(0,), ("a", 0)], [("a", 1)]),
        ("$['a b']", [("a b",)], [("a",)]),
        ("$['a.b'].c", [("a.b", "c")], [("a", "b", "c"), ("aXb", "c")]),
        ('$["it\'s"]', [("it's",)], [("its",)]),
        ("$['a'][\"b\"][1]", [("a", "b", 1)], [("a", "b")]),
    ],
)
def test_what_a_path_finds(
    path: str, found: list[tuple[str | int, ...]], not_found: list[tuple[str | int, ...]]
) -> None:
    """The value there, and all values below it."""
    assert [steps for steps in found if not finds(path, *steps)] == []
    assert [steps for steps in not_found if finds(path, *steps)] == []


def test_several_paths() -> None:
    """What any of them finds; without paths there is no pattern."""
    pattern = compiled_paths(["$.a", "$.b"])
    assert pattern is not None
    assert pattern.search("\x1fa")
    assert pattern.search("\x1fb")
    assert not pattern.search("\x1fc")
    assert compiled_paths([]) is None


@for_all(
    "path",
    ["", "$", "a", ".a", "a.b", "$a", "$.", "$..", "$.a.", "$.a[", "$.a[x]", "$.a[-1]", "$[a]",
     "$.a b", "$.1", "$.a[0", "$['a]", "$.a?", "x.a", "@.a",
     "$.a...b", "$...a", "$.a...", "$....b"],
)  # fmt: skip
def test_a_path_that_cannot_be_read(path: str) -> None:
    """The message has the path, and examples of those that can."""
    with pytest.raises(UsageError) as caught:
        compiled_paths(["$.ok", path])
    assert str(caught.value) == (
        f"{path!r} is no path that is known here; such are $.user, $.metadata['user id'], "
        "$.messages[*].name, $.input[0] and $..email"
    )
