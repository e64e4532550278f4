"""The options of `mockllm check` as values, checked together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

from mockllm.checking.cases.case import Level
from mockllm.checking.cuts.prefixes import CutLevel
from mockllm.checking.outcome import FIELDS, LABELS
from mockllm.checking.policy import Policy
from mockllm.conformance.case_names import Setting
from mockllm.core.errors import UsageError
from mockllm.core.pairs import read_pairs
from mockllm.wire.protocols import PROTOCOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options for what `mockllm check` and `check-gateway` write; see their help.

    Raises:
        UsageError: they do not go together.
    """

    results: Path | None = None
    junit: Path | None = None
    html: Path | None = None
    badge: Path | None = None
    known_failing: Path | None = None
    known_flaky: Path | None = None
    update: bool = False

    def __post_init__(self) -> None:
        if self.update and self.known_failing is None:
            raise UsageError("--update writes the file of --known-failing, which is not given")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Options of a call of `mockllm check`; see its help."""

    api: str
    command: tuple[str, ...]
    paths: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    variations: int = 0
    seed: str = "0"
    no_quirks: bool = False
    choices: tuple[str, ...] = ()
    level: Level = "bytes"
    http: bool = False
    per_case: bool = False
    jobs: int = 1
    window: int = 64
    limit: float | None = None
    self_test: bool = False
    cuts: bool = False
    faults: bool = False
    rules: tuple[str, ...] = ()
    emit: Path | None = None
    judge: Path | None = None
    no_shrink: bool = False
    reporting: ReportOptions = field(default_factory=ReportOptions)
    policy: Policy = field(default_factory=Policy)

    @classmethod
    def of(cls, *, choices: tuple[str, ...], **options: Any) -> Self:
        """The options, if they go together."""
        chosen = cls(choices=choices, policy=read_policy(choices), **options)
        if problem := chosen._problem():
            raise UsageError(problem)
        return chosen

    def _problem(self) -> str:
        if not self.api:
            return (
                f"Missing option '--api'. Which API does the client speak? {', '.join(PROTOCOLS)}"
            )
        is_socket = self.api in PROTOCOLS and PROTOCOLS.addresses[self.api].is_socket
        if is_socket and (self.http or self.faults or self.level != "payloads"):
            return (
                f"--api {self.api}: it has only WebSockets, whose messages --level payloads plays; "
                "neither bytes nor requests over HTTP go with it"
            )
        ways = [name for name in ("self_test", "emit", "judge") if getattr(self, name)]
        if len(ways) > 1:
            return (
                " and ".join(f"--{name.replace('_', '-')}" for name in ways) + " exclude each other"
            )
        if self.command and (self.emit or self.judge):
            return f"--{ways[0]} starts no program: leave CMD out"
        if not (self.command or self.emit or self.judge):
            return (
                "which runner? mockllm check ... -- CMD; "
                "`mockllm init --runner python DIR` writes one to begin with"
            )
        if self.self_test and self.per_case:
            return "--self-test is about programs that answer in lines, which --per-case are not"
        if self.per_case and not self.http:
            return "--per-case is for --http"
        if self.http and (self.level != "bytes" or self.emit or self.judge):
            return "--http goes with neither --level payloads nor --emit nor --judge"
        others = ("emit", "judge", "self_test", "variations", "no_quirks", "choices")
        if self.cuts and any(getattr(self, name) for name in others):
            return (
                "--cuts goes with none of --emit, --judge, --self-test, --variations, "
                "--no-quirks, --policy"
            )
        if self.rules and not self.faults:
            return "--rule is for --faults"
        if self.faults and (problem := self._faults_problem()):
            return problem
        return ""

    def _faults_problem(self) -> str:
        if not self.http:
            return "--faults is for whole clients: --http --faults; for accumulators, see --cuts"
        given = [name for name in _NOT_WITH_FAULTS if getattr(self, name)]
        if not given:
            return ""
        return f"--faults does not go with --{_OPTIONS.get(given[0], given[0]).replace('_', '-')}"

    @property
    def measured_level(self) -> CutLevel:
        """`bytes`, `payloads` or `http`."""
        return "http" if self.http else self.level

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The options that chose the cases, for the results file."""
        given: dict[str, Any] = {"variations": self.variations, "seed": self.seed}
        if self.cuts:
            given = {"cuts": True}
        if self.faults:
            given = {"rules": list(self.rules)} if self.rules else {}
        if self.only:
            given["only"] = list(self.only)
        if self.no_quirks:
            given["quirks"] = False
        if self.paths:
            given["scenarios"] = list(map(str, self.paths))
        if self.choices:
            given["policy"] = _policy_pairs(self.choices)
        return given

    @property
    def setting(self) -> Setting:
        """The words that reproduce a case."""
        words = ["--api", self.api]
        words += ["--http"] if self.http else []
        words += ["--faults"] if self.faults else []
        words += ["--cuts"] if self.cuts else []
        words += ["--per-case"] if self.per_case else []
        words += ["--level", self.level] if self.level != "bytes" else []
        words += ["--variations", str(self.variations)] if self.variations else []
        words += ["--seed", self.seed] if self.seed != "0" else []
        words += [word for choice in self.choices for word in ("--policy", choice)]
        words += ["--limit", f"{self.limit:g}"] if self.limit is not None else []
        return Setting(self.command, tuple(words), tuple(map(str, self.paths)))


_NOT_WITH_FAULTS = ("cuts", "self_test", "variations", "paths", "choices", "no_quirks")
_OPTIONS = {"paths": "scenarios", "choices": "policy"}
"""The names of options that are called otherwise here."""


def read_policy(choices: Iterable[str]) -> Policy:
    """The policy of pairs; `ignore` takes names with commas between.

    Raises:
        UsageError: a key or a value is none that there is.
    """
    fields: dict[str, Any] = {}
    for key, value in _policy_pairs(choices).items():
        if key == "ignore":
            fields[key] = frozenset(filter(None, value.split(",")))
            _check_fields(fields[key])
            continue
        known = _POLICY[key]
        if value not in known:
            raise UsageError(f"--policy {key}={value}: {key} is one of {', '.join(known)}")
        fields[key] = value == "true" if known == _FLAG else value
    return Policy(**fields)


def _policy_pairs(choices: Iterable[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for choice in choices:
        if choice.startswith("allow="):
            raise UsageError("--policy allow: list such cases in a file, with --known-failing")
        try:
            pairs |= read_pairs(choice, _POLICY, "malformed=skip")
        except ValueError as error:
            raise UsageError(f"--policy {choice!r}: {error}") from None
    return pairs


_HINTS = get_type_hints(Policy)
_FLAG = ("true", "false")
_POLICY: dict[str, tuple[str, ...]] = {
    **{key: get_args(_HINTS[key]) for key in ("malformed", "missing_id", "unknown_tool", "order")},
    "ignore": (),
    "usage_requested": _FLAG,
}
"""The values of each key; of `ignore` they are fields of outcomes."""

_FIELDS = (*FIELDS, *LABELS, "call_id")


def _check_fields(names: Iterable[str]) -> None:
    unknown = sorted(set(names) - set(_FIELDS))
    if unknown:
        raise UsageError(
            f"--policy ignore: an outcome has no {unknown[0]!r}; it has {', '.join(_FIELDS)}"
        )
