"""The options of the command line and of the ini file, and the markers.

The command line takes precedence over the markers of a test, and these over the ini file.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from mockllm.record.redaction.rules import Rules

_T = TypeVar("_T")

MARKERS = (
    "mockllm(*names, unplayed=False, no_requests=False, unmatched=False, invalid=False, "
    "extra_requests=False, violations=(), depth=50, require=(), match=True, quirks=(), fault=(), "
    "latency=None, speed=None, scenarios=(), intercept=()): the scenarios that answer the test, by "
    "name, with match=False whatever their match; what breaks on the way of its answers, and how "
    "long they take; and what is allowed: turns that are not played, a test without a request, "
    "requests that match nothing, are refused, or repeat one that was answered, and rules of "
    "conversations that are broken (names, or True for all); and those that are required.",
    "mockllm_cases(api, scenarios=None, variations=25, quirks=True, level='payloads', seed='0'): "
    "runs a test with `mockllm_case` once for each case that a client of the API goes through.",
    "mockllm_recorded(mode=None, upstream=(), match=()): plays what real services answered the "
    "test when it was recorded, from recorded/MODULE/TEST beside its module; --mockllm-record "
    "records it.",
)
"""As `pytest --markers` lists them."""


MODES = ("none", "once", "new_episodes", "all", "changed", "stale")
"""When a test is recorded: never; if it has no recording; only new requests; always, replacing the
recording; if its last run sent other requests than were recorded; if its recording is older than
`max_age`. The last two replace the recording, too."""

CHANGED = "mockllm/changed"
"""The key of pytest's cache with the tests that sent other requests than were recorded."""


def _speed(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number of at least 0")
    return number


def _count(value: str) -> int:
    if not value.isdecimal():
        raise argparse.ArgumentTypeError(f"{value!r} is not a whole number of at least 0")
    return int(value)


def _mode(value: str) -> str:
    if value not in MODES:
        raise argparse.ArgumentTypeError(f"{value!r} is none of {', '.join(MODES)}")
    return value


def _max_age(value: str) -> str:
    from mockllm.record.recording.store.ages import read_max_age

    try:
        read_max_age(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


# Name, parser of its text, metavar, help.
_VALUES: tuple[tuple[str, Callable[[str], Any], str, str], ...] = (
    (
        "speed",
        _speed,
        "NUMBER",
        "Of timed streams: 2 is twice as fast, 0 leaves all pauses out (default: 1).",
    ),
    ("seed", str, "TEXT", "What variations are drawn from (default: 0)."),
    (
        "variations",
        _count,
        "N",
        "Ways of cutting each answer that a case or a suite goes through (default: 25, of whole "
        "clients 3).",
    ),
    (
        "record",
        _mode,
        "MODE",
        "What is recorded of tests that are marked mockllm_recorded. none (default): nothing, "
        "their recordings are played; once: those that have no recording; new_episodes: requests "
        "that are in no recording; all: everything again; changed: the tests that sent other "
        "requests than were recorded when they ran last; stale: those with recordings older than "
        "--mockllm-max-age.",
    ),
    (
        "max_age",
        _max_age,
        "AGE[:error]",
        "Warn of tests whose recordings are older than 30d (days) or 4w (weeks); with :error they "
        "fail.",
    ),
)
_FLAGS = (
    ("unplayed", "Turns that are not played fail no test, as with mockllm(unplayed=True)."),
    (
        "no_requests",
        "Sessions to which no request came fail no test, as with mockllm(no_requests=True).",
    ),
    ("show", "Print the exchanges of every test that has a session."),
    ("unused", "Name the scenarios of --mockllm-scenarios that nothing played."),
    ("trust_env", "Record through the proxies that the environment names."),
)
# Name, metavar, help: each may be repeated.
_SECRETS = (
    ("redact", "PATTERN", "A regular expression for what is secret in a recording too."),
    ("redact_path", "PATH", "A path in JSON bodies whose value is secret, such as $.user."),
    ("redact_kind", "KIND", "A kind that is not secret by default: phone, iban, card or ssn."),
    (
        "keep",
        "WHAT",
        "What stays in a recording: a kind of secret (email), a path in JSON ($..arguments.to), a "
        "kind at a path ('email in $..arguments'), or /PATTERN/ for a whole secret.",
    ),
)
_IGNORE = (
    "match_ignore",
    "WHAT",
    "What of requests differs from run to run and is not compared: uuid, timestamp, date, a path "
    "in JSON bodies ($.metadata) or /PATTERN/.",
)
AUDIT = "--mockllm-audit"
_PARSERS = {name: parse for name, parse, _, _ in _VALUES}


def add_options(parser: pytest.Parser) -> None:
    """Adds the options to the command line and to the ini file."""
    group = parser.getgroup("mockllm-harness", "mockllm: a mock server for LLM streams")
    text = "Scenario files and folders. A scenario of them answers a test that names it."
    # Not Path: pytest-xdist sends only plain values to its workers.
    group.addoption(
        "--mockllm-scenarios",
        action="append",
        type=os.path.abspath,
        metavar="PATH",
        help=f"{text} May be repeated.",
    )
    parser.addini("mockllm_scenarios", text, type="paths", default=[])
    text = "The real service to record from, [API=]URL, for one API (chat, responses, openai for "
    text += "all of OpenAI's, anthropic, gemini, ...) or for all."
    group.addoption(
        "--mockllm-upstream",
        action="append",
        metavar="[API=]URL",
        help=f"{text} May be repeated; also MOCKLLM_UPSTREAM, MOCKLLM_UPSTREAM_OPENAI and so on.",
    )
    parser.addini("mockllm_upstream", text, type="linelist", default=[])
    text = "A rule of conversations that is not judged otherwise: system-kept, tools-kept, "
    text += "call-offered, text-in-history, or one about tries such as backoff-grows."
    group.addoption(
        "--mockllm-require", action="append", metavar="RULE", help=f"{text} May be repeated."
    )
    parser.addini("mockllm_require", text, type="linelist", default=[])
    for name, metavar, text in (*_SECRETS, _IGNORE):
        option = f"--mockllm-{name.replace('_', '-')}"
        group.addoption(option, action="append", metavar=metavar, help=f"{text} May be repeated.")
        parser.addini(f"mockllm_{name}", text, type="linelist", default=[])
    for name, parse, metavar, text in _VALUES:
        option = f"--mockllm-{name.replace('_', '-')}"
        group.addoption(option, type=parse, metavar=metavar, help=text)
        parser.addini(f"mockllm_{name}", text, default="")
    group.addoption(
        AUDIT,
        nargs="?",
        const="",
        metavar="FILE",
        help="Compare what tests of vcrpy, pytest-recording and pytest-vcr send with what their "
        "cassettes were recorded from, while vcrpy replays them. FILE, after an equals sign: "
        "report.html, report.json, or a folder for both.",
    )
    for name, text in _FLAGS:
        option = f"--mockllm-{name.replace('_', '-')}"
        group.addoption(option, action="store_true", default=False, help=text)
        parser.addini(f"mockllm_{name}", text, type="bool", default=False)


def setting(config: pytest.Config, name: str, marked: _T | None, default: _T) -> _T:
    """The value of an option: from the command line, the test, the ini file, or the default.

    Args:
        marked: the value in the marker or the suite; None if it does not set one.

    Raises:
        pytest.UsageError: the ini file has an invalid value.
    """
    from_command_line: _T | None = config.getoption(f"mockllm_{name}")
    if from_command_line is not None:
        return from_command_line
    if marked is not None:
        return marked
    text = str(config.getini(f"mockllm_{name}")).strip()
    if not text:
        return default
    try:
        return _PARSERS[name](text)  # type: ignore[no-any-return]
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini option mockllm_{name}: {error}") from None


def flag(config: pytest.Config, name: str) -> bool:
    """Whether a flag is set on the command line or in the ini file."""
    return bool(config.getoption(f"mockllm_{name}") or config.getini(f"mockllm_{name}"))


def required_rules(config: pytest.Config) -> tuple[str, ...]:
    """The rules that every test requires."""
    return (*config.getini("mockllm_require"), *(config.getoption("mockllm_require") or ()))


def ignored_parts(config: pytest.Config) -> tuple[str, ...]:
    """The parts of requests that are not compared, from the ini file and the command line.

    Raises:
        pytest.UsageError: it is none of what can be ignored.
    """
    from mockllm.scenario.ignoring import flaw_of

    name = _IGNORE[0]
    parts = (*config.getini(f"mockllm_{name}"), *(config.getoption(f"mockllm_{name}") or ()))
    for part in parts:
        if flaw := flaw_of(part):
            raise pytest.UsageError(f"mockllm_{name}: {part!r} {flaw}")
    return parts


def paths(config: pytest.Config) -> tuple[Path, ...]:
    """The scenario files and folders of the run; those of the command line replace the ini's."""
    given = config.getoption("mockllm_scenarios") or config.getini("mockllm_scenarios")
    return tuple(map(Path, given))


def secret_rules(config: pytest.Config) -> Rules:
    """The rules for secrets in recordings: of `mockllm.toml` at the root of the tests, the ini
    file and the command line, together.

    Raises:
        UsageError: a rule cannot be read.
    """
    from mockllm.record.redaction.rules import rules_from

    file = config.rootpath / "mockllm.toml"
    given = [
        [*config.getini(f"mockllm_{name}"), *(config.getoption(f"mockllm_{name}") or ())]
        for name, _, _ in _SECRETS
    ]
    return rules_from(file if file.is_file() else None, *given, prefix="--mockllm-")


def upstreams(config: pytest.Config, marked: Iterable[str]) -> dict[str, str]:
    """The base URL of the real service, by API: from the command line, the test, the environment,
    or the ini file.

    Args:
        marked: the values in the marker of the test.

    Raises:
        UsageError: a value is not a base URL.
    """
    from mockllm.cli.options.recording import services

    return {
        **services(config.getini("mockllm_upstream"), {}, "mockllm_upstream"),
        **services((), os.environ),
        **services(marked, {}, "mockllm_recorded(upstream=...)"),
        **services(config.getoption("mockllm_upstream") or (), {}, "--mockllm-upstream"),
    }
