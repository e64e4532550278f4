"""Reads the markers `@pytest.mark.mockllm`, `mockllm_cases` and `mockllm_recorded`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, Literal

import pytest

from mockllm.core.text import did_you_mean
from mockllm_pytest.options import MODES

CONDITIONS = ("user", "system", "model", "tools")
"""The conditions by which a recorded scenario may match."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The mistakes that a test allows, and the rules that it requires, as `read_session` describes
    them."""

    unplayed: bool = False
    no_requests: bool = False
    unmatched: bool = False
    invalid: bool = False
    violations: bool | frozenset[str] = frozenset()
    depth: int = 50
    extra_requests: bool = False
    require: frozenset[str] = frozenset()

    @property
    def allows_extra_requests(self) -> bool:
        """Whether an answer that was given may be requested again."""
        named = self.violations
        is_named = named if isinstance(named, bool) else "extra-request" in named
        return self.extra_requests or is_named


@dataclass(frozen=True, slots=True)
class MockllmMark:
    """The arguments of `@pytest.mark.mockllm`, as `read_session` describes them.

    Args:
        given: the keyword arguments, as they were written.
        speed: None if the marker does not set it.
        intercept: the hosts that are intercepted besides known services; None: none are.
    """

    names: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    allowed: Allowed = Allowed()
    quirks: tuple[str, ...] = ()
    speed: float | None = None
    scenarios: tuple[Any, ...] = ()
    match: bool = True
    fault: tuple[str, ...] = ()
    intercept: tuple[str, ...] | None = ()
    latency: str | None = None
    azure: bool = False

    @property
    def has_proxy(self) -> bool:
        """Whether programs that the test starts are intercepted, too: where it says so itself."""
        return self.intercept is not None and "intercept" in self.given


@dataclass(frozen=True, slots=True)
class CasesMark:
    """The arguments of `@pytest.mark.mockllm_cases`; None for those that it does not set."""

    apis: tuple[str, ...]
    scenarios: Any = None
    variations: int | None = None
    quirks: bool = True
    level: Literal["payloads", "bytes"] = "payloads"
    seed: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedMark:
    """The arguments of `@pytest.mark.mockllm_recorded`, as `read_recorded` describes them; None and
    () for those that it does not set."""

    mode: str | None = None
    upstream: tuple[str, ...] = ()
    match: tuple[str, ...] = ()


def session_mark(node: pytest.Item) -> MockllmMark:
    """The `mockllm` markers of a test, merged; the one closest to the test takes precedence."""
    names: tuple[str, ...] = ()
    given: dict[str, Any] = {}
    for mark in node.iter_markers("mockllm"):
        names = names or mark.args
        given = {**mark.kwargs, **given}
    _check("mockllm", given, read_session)
    return read_session(names, given, **given)


def read_session(
    names: tuple[str, ...],
    given: Mapping[str, Any],
    *,
    unplayed: bool = False,
    no_requests: bool = False,
    unmatched: bool = False,
    invalid: bool = False,
    violations: bool | str | Iterable[str] = (),
    depth: int = 50,
    extra_requests: bool = False,
    require: str | Iterable[str] = (),
    match: bool = True,
    quirks: str | Iterable[str] = (),
    fault: str | Iterable[str] = (),
    latency: str | None = None,
    speed: float | None = None,
    scenarios: Any = (),
    intercept: str | Iterable[str] | None = "known",
    azure: bool = False,
) -> MockllmMark:
    """Gives a test a session, also where it does not name the fixture, and sets what answers and
    which mistakes are allowed. Markers of a class or module count, too; for each argument, the one
    closest to the test takes precedence.

    Args:
        names: of the scenarios that answer, or paths, as in `MockSession.use`.
        unplayed: whether turns may be left unplayed.
        no_requests: whether it is right that no request comes.
        unmatched: whether requests may be without an answer.
        invalid: whether requests may be refused.
        violations: the names of the conversation invariants that may be broken; `True`: all, also
            where requests cannot be judged.
        depth: how many requests in a row a client may make for a model that never stops
            calling tools.
        extra_requests: whether an answer that was given may be requested again.
        require: the names of invariants that are not judged otherwise, such as `tools-kept`; they
            add to those of `--mockllm-require`.
        match: whether the `match` of the scenarios counts.
        quirks: the names of quirks in every streamed answer.
        fault: what breaks on the way of every answer, as `mockllm serve --fault` has it; of
            several, one is drawn for each answer.
        latency: how long answers take, as `mockllm serve --latency` has it; default: as their
            scenarios say.
        speed: of timed streams: 2 is twice as fast, 0 leaves out all pauses; default:
            `--mockllm-speed`.
        scenarios: paths of files in which the names are looked up, too; without names, all of
            their scenarios answer.
        intercept: hosts such as `api.cohere.com` or `*.ibm.com`, or `*` for all but this machine:
            what the test sends to them, and to known services, is answered here, without a base
            URL; `known` adds no host. Where the marker has it, programs that the test starts are
            intercepted, too. None: nothing is intercepted.
        azure: whether the variables of OpenAI's models on Azure are set, too. The module `openai`
            cannot choose a service then.
    """
    if not match and not (names or scenarios):
        raise pytest.UsageError(
            "@pytest.mark.mockllm: match=False concerns the scenarios that the marker names, and "
            'it names none: @pytest.mark.mockllm("NAME", match=False), or '
            'mockllm_session.use("NAME", match=False)'
        )
    return MockllmMark(
        names,
        given,
        read_allowed(
            violations,
            require,
            unplayed=unplayed,
            no_requests=no_requests,
            unmatched=unmatched,
            invalid=invalid,
            depth=depth,
            extra_requests=extra_requests,
        ),
        _several(quirks),
        speed,
        _several(scenarios),
        match,
        _several(fault),
        None
        if intercept is None
        else tuple(host for host in _several(intercept) if host != "known"),
        latency,
        azure,
    )


def read_allowed(
    violations: bool | str | Iterable[str], require: str | Iterable[str], **others: Any
) -> Allowed:
    """An `Allowed` from more convenient values: `violations` and `require` may be a single name."""
    if not isinstance(violations, bool):
        violations = frozenset(_several(violations))
    violations = violations or frozenset()
    return Allowed(violations=violations, require=frozenset(_several(require)), **others)


def recorded_mark(node: pytest.Item) -> RecordedMark | None:
    """The `mockllm_recorded` markers of a test, merged; the one closest to the test takes
    precedence. None if it has none.

    Raises:
        pytest.UsageError: a marker has an unknown argument or value.
    """
    given: dict[str, Any] = {}
    marks = list(node.iter_markers("mockllm_recorded"))
    for mark in marks:
        if mark.args:
            raise pytest.UsageError(
                "@pytest.mark.mockllm_recorded takes keyword arguments only, got "
                f"{mark.args[0]!r}; the name of the test decides where its recording is: "
                '@pytest.mark.mockllm_recorded(mode="once")'
            )
        given = {**mark.kwargs, **given}
    _check("mockllm_recorded", given, read_recorded)
    return read_recorded(**given) if marks else None


def read_recorded(
    *,
    mode: str | None = None,
    upstream: str | Iterable[str] = (),
    match: str | Iterable[str] = (),
) -> RecordedMark:
    """Plays what real services answered the test when it was recorded.

    Args:
        mode: when the test is recorded, `none`, `once`, `new_episodes`, `all`, `changed` or
            `stale`; default: `--mockllm-record`.
        upstream: the real service, `[API=]URL`; default: `--mockllm-upstream`.
        match: which conditions new recordings have, of `user`, `system`, `model` and `tools`;
            default: the text of the user.
    """
    _one_of("mode", () if mode is None else (mode,), MODES)
    _one_of("match", _several(match), CONDITIONS)
    return RecordedMark(mode, _several(upstream), _several(match))


def _one_of(name: str, given: tuple[str, ...], known: tuple[str, ...]) -> None:
    for value in given:
        if value not in known:
            raise pytest.UsageError(
                f"@pytest.mark.mockllm_recorded: {name} {value!r} is none of {', '.join(known)}"
            )


def cases_mark(node: pytest.Item | pytest.Function) -> CasesMark:
    """The `mockllm_cases` marker of a test.

    Raises:
        pytest.UsageError: there is none, or it has an unknown argument or value.
    """
    mark = node.get_closest_marker("mockllm_cases")
    if mark is None:
        raise pytest.UsageError(
            f"{node.nodeid} uses mockllm_case and does not say which: add "
            '@pytest.mark.mockllm_cases(api="chat")'
        )
    _check("mockllm_cases", mark.kwargs, read_cases)
    try:
        signature(read_cases).bind(*mark.args, **mark.kwargs)
    except TypeError as error:
        raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.mockllm_cases: {error}") from None
    return read_cases(*mark.args, **mark.kwargs)


def read_cases(
    api: str | Iterable[str],
    *,
    scenarios: Any = None,
    variations: int | None = None,
    quirks: bool = True,
    level: Literal["payloads", "bytes"] = "payloads",
    seed: str | int | None = None,
) -> CasesMark:
    """Runs a test with `mockllm_case` once for each case that a client of the API may meet.

    Args:
        api: the names of one or several APIs.
        scenarios: names, paths and scenarios; default: all that the run knows.
        variations: how many ways to cut each answer; default: `--mockllm-variations`.
        quirks: whether to play the quirks of real servers.
        level: `"payloads"`, or `"bytes"` for cases that are special in their bytes only, too.
        seed: of the variations; default: `--mockllm-seed`.
    """
    if level not in ("payloads", "bytes"):
        raise pytest.UsageError(f"level must be 'payloads' or 'bytes', got {level!r}")
    seed = None if seed is None else str(seed)
    return CasesMark(_several(api), scenarios, variations, quirks, level, seed)


def _check(name: str, given: Collection[str], reader: Any) -> None:
    parameters = signature(reader).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY]
    known += ["api"] if name == "mockllm_cases" else []
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known, f"there are: {', '.join(known)}")
            raise pytest.UsageError(f"@pytest.mark.{name} has no argument {key!r}; {hint}")


def _several(value: Any) -> tuple[Any, ...]:
    """A tuple of several values, or of a single one."""
    single = isinstance(value, str) or not isinstance(value, Iterable)
    return (value,) if single else tuple(value)
