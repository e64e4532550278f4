"""Writes docs/pytest.md from the docstrings of the plugin: `python -m tests.docs.pytest_page`.

A test compares the page with the code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import mockllm_pytest
from mockllm_pytest import parts
from mockllm_pytest.agents import AgentRun, MockAgent
from mockllm_pytest.cases import MockCase
from mockllm_pytest.marks import read_cases, read_recorded, read_session
from mockllm_pytest.serving import MockService
from mockllm_pytest.sessions import MockSession

PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"

_WIDTH = 88
_SECTION = re.compile(r"^(Args|Raises|Returns):\n((?:    .*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*): (.*(?:\n    .*)*)", re.MULTILINE)
_TITLES = {"Args": "", "Raises": "Errors:", "Returns": "Returns:"}

CLASSES: dict[type, tuple[str, ...]] = {
    MockSession: (
        "reply", "use", "add", "scenarios", "quirks", "fault", "latency", "journal", "verify",
        "release", "wait_for_gate", "wait_until_over", "agent",
        "format_exchanges", "openai_url", "anthropic_url", "gemini_url", "cohere_url", "agui_url",
        "mcp_url", "mcp_command",
        "bedrock_url", "ollama_url", "base_urls", "url", "session", "environment",
    ),
    MockAgent: ("run",),
    AgentRun: ("output", "errors", "exit_code", "journal"),
    MockService: ("url", "base_urls"),
    MockCase: (
        "prompt", "tools", "url", "events", "chunks", "byte_chunks", "expected", "check", "api",
        "name",
    ),
}  # fmt: skip
"""The members of each class that are on the page, in its order."""

INTERNAL: dict[type, frozenset[str]] = {
    MockSession: frozenset(
        {
            "close",
            "has_proxy",
            "intercepts",
            "late_verdict",
            "mark_again",
            "report_failure",
            "passed",
            "recording_failure",
            "recording_summary",
        }
        | {"redirect", "verdict"}
    ),
    MockAgent: frozenset({"close"}),
    AgentRun: frozenset(),
    MockService: frozenset(
        {"close", "end", "environment", "find_hosts", "has_refused", "library", "played"}
        | {"proxy_variables", "redirect", "refusing_session", "required", "running", "running_url"}
        | {"session_name", "speed", "thread"}
    ),
    MockCase: frozenset({"case"}),
}
"""Public members that are for the plugin itself."""

_HEAD = """\
# The pytest API

Everything that a test may use of the plugin. [Testing with mockllm](testing.md) shows how to use
it. The plugin is part of `mockllm-harness`; pytest loads it by itself.

```python
# test_weather.py
import pytest
from mockllm_pytest import MockSession, text
from openai import OpenAI


def ask(question: str) -> str | None:
    answer = OpenAI().chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": question}]
    )
    return answer.choices[0].message.content


def test_a_reply(mockllm_session: MockSession) -> None:
    mockllm_session.reply(text("It rains.", split="words"))
    assert ask("How is the weather?") == "It rains."


@pytest.mark.mockllm(extra_requests=True)
def test_allowed_mistakes(mockllm_session: MockSession) -> None:
    mockllm_session.reply("It rains.")
    assert ask("In Oslo?") == ask("In Rome?") == "It rains."
```

The annotation `mockllm_session: MockSession` lets an editor complete the fixture and a type checker
check its use.

| fixture | type | scope | value |
|---|---|---|---|
| `mockllm_session` | [`MockSession`](#mocksession) | function | the session of the test |
| `mockllm_server` | [`MockService`](#mockservice) | session | the server of the run |
| `mockllm_case` | [`MockCase`](#mockcase) | function | a case of [the marker](#mockllm_cases) |

`mockllm_session` sets the variables from which SDKs read base URLs and keys, and restores them.
What this process asks known services is [answered by the session](interception.md#in-pytest), too.

Fixtures with a wider scope are set up before it. What they ask while they are set up, and when they
end, is [answered by a recording of theirs, or refused](interception.md#fixtures).

`python -m tests.docs.pytest_page` generates this page from docstrings; a test compares the two.
"""

_PARTS = """\
## Parts of a reply

Functions of `mockllm_pytest` for `MockSession.reply`. Each returns a `Part`: the mapping that a
[scenario file](parts.md#parts) would have. A `Split` is `"whole"`, `"chars"`, `"words"`, a
number of characters, `{"random": [1, 8]}`, or the list of the fragments.
"""

_MARKERS = """\
## Markers

The arguments of `@pytest.mark.mockllm`, `@pytest.mark.mockllm_cases` and
`@pytest.mark.mockllm_recorded`. An unknown argument is an error.
"""

MARKERS: dict[str, Callable[..., Any]] = {
    "mockllm": read_session,
    "mockllm_cases": read_cases,
    "mockllm_recorded": read_recorded,
}


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for cls, names in CLASSES.items():
        lines += [f"## {cls.__name__}", "", *_text(_class_docstring(cls)), ""]
        for name in names:
            lines += [*_member(cls, name), ""]
    lines += [_PARTS]
    for name in parts.__all__:
        if name != "Part":
            lines += [f"### {name}", "", *_function(name, getattr(mockllm_pytest, name)), ""]
    lines += [_MARKERS]
    for name, function in MARKERS.items():
        head = f"@pytest.mark.{name}"
        lines += [f"### {name}", "", *_function(head, function, returns=False), ""]
    return "\n".join(lines).rstrip() + "\n"


def public(cls: type) -> set[str]:
    """The names of the public members of a class."""
    names = {*vars(cls), *_attributes(cls), *_assigned(cls)}
    return {name for name in names if not name.startswith("_")}


def _class_docstring(cls: type) -> str:
    """The docstring without `Args`, which are those of the plugin."""
    return _SECTION.sub("", (inspect.getdoc(cls) or "") + "\n").strip()


def _member(cls: type, name: str) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    value = vars(cls).get(name)
    if isinstance(value, property):
        assert value.fget is not None
        yield from _value(name, value.fget.__annotations__["return"], value)
    elif value is None:
        annotation, docstring = _attributes(cls)[name]
        yield from _value(name, annotation, docstring)
    else:
        yield from _function(name, value)


def _value(name: str, annotation: str, documented: object) -> Iterator[str]:
    docstring = documented if isinstance(documented, str) else inspect.getdoc(documented)
    yield from ("```python", f"{name}: {annotation}", "```", "", *_text(docstring or ""))


def _attributes(cls: type) -> dict[str, tuple[str, str]]:
    """The attributes that a class declares in its body: their types and docstrings."""
    (node,) = ast.parse(dedent(inspect.getsource(cls))).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for one, following in zip(node.body, node.body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(following, ast.Expr):
            text = ast.literal_eval(following.value)
            found[ast.unparse(one.target)] = (ast.unparse(one.annotation), inspect.cleandoc(text))
    return found


def _assigned(cls: type) -> Iterator[str]:
    """The attributes that the methods of a class assign."""
    for node in ast.walk(ast.parse(dedent(inspect.getsource(cls)))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _function(name: str, function: Callable[..., Any], *, returns: bool = True) -> list[str]:
    head = ["```python", _signature(name, function, returns=returns), "```", ""]
    return [*head, *_text(inspect.getdoc(function) or "")]


def _signature(name: str, function: Callable[..., Any], *, returns: bool) -> str:
    """The call as code, on one line if it is short."""
    given = inspect.signature(function)
    result = f" -> {given.return_annotation}" if returns else ""
    parameters = list(_parameters(given, marker=not returns))
    line = f"{name}({', '.join(parameters)}){result}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), f"){result}"])


def _parameters(given: inspect.Signature, *, marker: bool) -> Iterator[str]:
    names = [name for name in given.parameters if name != "self"]
    if marker and names[:2] == ["names", "given"]:  # how the plugin passes on `*names`
        names = names[2:]
        yield "*names: str"
    star = any(
        parameter.kind is parameter.VAR_POSITIONAL for parameter in given.parameters.values()
    )
    for name in names:
        one = given.parameters[name]
        if one.kind is one.KEYWORD_ONLY and not star and not marker:
            star = True
            yield "*"
        prefix = "*" if one.kind is one.VAR_POSITIONAL else ""
        default = "" if one.default is one.empty else f" = {one.default!r}"
        yield f"{prefix}{name}: {one.annotation}{default}".replace("'", '"')


def _text(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: its sections become lists."""
    text = docstring.strip() + "\n"
    first = _SECTION.search(text)
    yield text[: first.start() if first else None].strip()
    for section in _SECTION.finditer(text):
        yield ""
        if _TITLES[section[1]]:
            yield from (_TITLES[section[1]], "")
        for names, description in _ENTRY.findall(dedent(section[2])):
            joined = " ".join(description.split())
            quoted = ", ".join(f"`{name}`" for name in names.split(", "))
            yield f"- {quoted}: {joined}"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE} written")
