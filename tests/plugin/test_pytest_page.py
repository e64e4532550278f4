"""docs/pytest.md agrees with the plugin, and its example works."""

from __future__ import annotations

import re

import openai  # noqa: F401 - imported once, as conftest does
import pytest

from tests.docs.pytest_page import CLASSES, INTERNAL, PAGE, page, public


def test_the_page_is_current() -> None:
    """A docstring or an argument that changes is on the page in the same commit."""
    assert PAGE.read_text() == page(), "run: python -m tests.docs.pytest_page"


@pytest.mark.parametrize("cls", CLASSES)
def test_every_public_member_is_on_the_page(cls: type) -> None:
    """A public member is on the page, or listed as one for the plugin itself."""
    assert public(cls) == {*CLASSES[cls], *INTERNAL[cls]}


def test_no_argument_is_without_a_description() -> None:
    """The lists of arguments have each argument of the functions that users call."""
    for part in page().split("\n### ")[1:]:
        code, _, text = part.partition("```python\n")[2].partition("```")
        arguments = re.findall(r"^    \*?(\w+): ", code, re.MULTILINE)
        missing = {name for name in arguments if f"`{name}`" not in text}
        # What the text of `text` and the name of `tool` are, the headings show.
        assert missing <= {"text", "name"}, part


def test_the_example_works(project) -> None:
    """The example on the page passes."""
    project.makepyfile(test_weather=PAGE.read_text().split("```python\n")[1].split("```")[0])
    project.runpytest_inprocess().assert_outcomes(passed=2)
