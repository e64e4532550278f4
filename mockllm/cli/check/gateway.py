"""`mockllm check --gateway`: judges a gateway between a client and a service."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from mockllm.checking.rules import GATEWAYS
from mockllm.cli.check.check_run import known_lists, report
from mockllm.cli.check.options import CheckOptions
from mockllm.cli.check.plan import Interruptible, results_of_today
from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.progress import progress_line
from mockllm.conformance.case_names import Setting, choose
from mockllm.conformance.driver import Driver
from mockllm.conformance.gateways.cases import Pair, gateway_cases
from mockllm.conformance.gateways.check import Gateway, case_forms
from mockllm.conformance.gateways.gateway_run import judge_gateway
from mockllm.conformance.gateways.presets import preset_client, preset_gateway
from mockllm.conformance.gateways.program import GatewayCommand, read_templates
from mockllm.conformance.results import GATEWAY_LEVEL, Client
from mockllm.core.errors import UsageError
from mockllm.core.text import quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """The options of `mockllm check` that are for gateways; see its help."""

    gateway: bool = False
    down: str | None = None
    up: str | None = None
    preset: str | None = None
    template: tuple[Path, ...] = ()
    model: str | None = None
    header: tuple[str, ...] = ()
    ready: str = ""
    tries: int | None = None
    rounds: int = 2
    url: str | None = None
    upstream_port: int = 0
    unsupported: tuple[str, ...] = ()
    every: bool = False

    @classmethod
    def take_from(cls, options: dict[str, Any]) -> Self:
        """These options, taken out of all options of the command."""
        return cls(**{name: options.pop(name) for name in cls.__slots__})

    def check(self, command: Sequence[str], others: Mapping[str, Any]) -> None:
        """Checks that the options go together.

        Raises:
            UsageError: they do not.
        """
        if not self.gateway:
            own = next((name for name in self.__slots__ if self._is_given(name)), "")
            if own:
                raise UsageError(f"--{_OPTION.get(own, own).replace('_', '-')} is for --gateway")
            return
        given = next((name for name in _NOT_WITH_GATEWAYS if others.get(name)), "")
        if given:
            raise UsageError(f"--{given.replace('_', '-')} does not go with --gateway")
        if not self.down or not self.up:
            raise UsageError(
                "--gateway needs --down API and --up API: what its clients and its upstream speak"
            )
        if bool(self.url) == bool(command or self.preset):
            raise UsageError(
                "which gateway? mockllm check --gateway ... -- CMD starts one, --preset NAME one "
                "that is known, --url URL judges one that runs"
            )
        if self.url and not self.upstream_port:
            raise UsageError(
                "--url needs --upstream-port: where the running gateway finds its upstream"
            )

    def _is_given(self, name: str) -> bool:
        default = type(self).__dataclass_fields__[name].default
        return bool(getattr(self, name) != default)

    @property
    def pair(self) -> Pair:
        return Pair(str(self.down), str(self.up))

    @property
    def words(self) -> tuple[str, ...]:
        """The words that reproduce a case."""
        words = ["--gateway", "--down", str(self.down), "--up", str(self.up)]
        words += ["--preset", self.preset] if self.preset else []
        words += [word for path in self.template for word in ("--template", str(path))]
        words += ["--model", self.model] if self.model else []
        words += [word for header in self.header for word in ("--header", header)]
        words += ["--ready", self.ready] if self.ready else []
        words += ["--tries", str(self.tries)] if self.tries else []
        words += ["--url", self.url, "--upstream-port", str(self.upstream_port)] if self.url else []
        words += ["--all"] if self.every else []
        return tuple(words)


_OPTION = {"every": "all"}
_NOT_WITH_GATEWAYS = (
    "api",
    "paths",
    "choices",
    "http",
    "per_case",
    "faults",
    "cuts",
    "self_test",
    "emit",
    "judge",
)


def run_gateway(options: GatewayOptions, reporting: CheckOptions) -> int:
    """Judges a gateway; returns the exit code.

    0: right, or as `--known-failing` lists it. 1: there are mistakes. 2: not all was judged, or the
    control run without a gateway is not all right.
    """
    gateway = _gateway(options, reporting)
    listed = gateway_cases(options.pair, every=options.every)
    cases = choose(listed, reporting.only, case_forms, "case")
    client = _client(options, reporting.command)
    arguments = {"rounds": options.rounds, "all": options.every}
    empty = results_of_today(client, str(options.pair), GATEWAY_LEVEL, arguments)
    names = tuple(f"{case.name}:{rule}" for case in listed for rule in GATEWAYS)
    lists = known_lists(reporting, names)
    with progress_line() as progress, Interruptible() as interrupted:
        judged = judge_gateway(gateway, cases, empty, Driver(progress, interrupted.goes_on))
    if judged.strangers:
        first = judged.strangers[0].received
        requests = quantity(len(judged.strangers), "request")
        echo(
            f"mockllm: {requests} of the gateway's own, such as {first.method} {first.path}, "
            "reached the upstream and are not judged",
            err=True,
        )
    return report(reporting, judged.results, names, *lists)


def _gateway(options: GatewayOptions, reporting: CheckOptions) -> Gateway:
    """The gateway that is judged: a preset, and options in place of its parts."""
    pair, words = options.pair, reporting.command
    if options.preset:
        known = preset_gateway(options.preset, pair, words)
    elif words:
        files = read_templates(options.template)
        known = Gateway(pair=pair, command=GatewayCommand(words, files, options.ready))
    else:
        known = Gateway(pair=pair, url=options.url or "")
    return replace(
        known,
        upstream_port=options.upstream_port,
        model=options.model or known.model,
        headers={**known.headers, **dict(map(_header, options.header))},
        tries=options.tries or known.tries,
        rounds=options.rounds,
        unsupported={**known.unsupported, **dict(map(_reason, options.unsupported))},
        setting=Setting(words, options.words),
    )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise UsageError(f"--header {text}: it is NAME: VALUE")
    return name.strip().lower(), value.strip()


def _reason(text: str) -> tuple[str, str]:
    pattern, _, reason = text.partition("=")
    if not reason:
        raise UsageError(f"--unsupported {text}: it is PATTERN=REASON")
    return pattern, reason


def _client(options: GatewayOptions, command: Sequence[str]) -> Client:
    """The gateway's name in the results."""
    if options.preset:
        return preset_client(options.preset)
    adapter = shlex.join(command) or options.url or ""
    return Client(Path(adapter.split()[0]).name, adapter=adapter)
