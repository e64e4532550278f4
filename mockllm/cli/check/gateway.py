"""`mockllm check-gateway`: judges a gateway between a client and a service."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from mockllm.checking.rules import GATEWAYS
from mockllm.cli.check.check_run import known_lists, report
from mockllm.cli.check.options import ReportOptions
from mockllm.cli.check.plan import Interruptible, results_of_today
from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.progress import progress_line
from mockllm.conformance.case_names import Setting, choose
from mockllm.conformance.driver import Driver
from mockllm.conformance.gateways.cases import Pair, gateway_cases, outside
from mockllm.conformance.gateways.check import Gateway, case_forms
from mockllm.conformance.gateways.gateway_run import judge_gateway
from mockllm.conformance.gateways.presets import preset_client, preset_gateway
from mockllm.conformance.gateways.prices import Prices
from mockllm.conformance.gateways.program import GatewayCommand, read_templates
from mockllm.conformance.results import GATEWAY_LEVEL, Client
from mockllm.core.errors import UsageError
from mockllm.core.pairs import read_pair
from mockllm.core.text import quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """Options of a call of `mockllm check-gateway`; see its help.

    Raises:
        UsageError: they do not go together.
    """

    down: str
    up: str
    command: tuple[str, ...]
    only: tuple[str, ...]
    preset: str | None
    template: tuple[Path, ...]
    model: str | None
    header: tuple[str, ...]
    ready: str
    tries: int | None
    rounds: int
    url: str | None
    upstream_port: int
    unsupported: tuple[str, ...]
    prices: str | None
    every: bool
    reporting: ReportOptions

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.command or self.preset):
            raise UsageError(
                "which gateway? mockllm check-gateway ... -- CMD starts one, --preset NAME one "
                "that is known, --url URL judges one that runs"
            )
        if self.url and not self.upstream_port:
            raise UsageError(
                "--url needs --upstream-port: where the running gateway finds its upstream"
            )

    @property
    def pair(self) -> Pair:
        return Pair(self.down, self.up)

    @property
    def setting(self) -> Setting:
        """The words that reproduce a case."""
        words = ["--down", self.down, "--up", self.up]
        words += ["--preset", self.preset] if self.preset else []
        words += [word for path in self.template for word in ("--template", str(path))]
        words += ["--model", self.model] if self.model else []
        words += [word for header in self.header for word in ("--header", header)]
        words += ["--ready", self.ready] if self.ready else []
        words += ["--tries", str(self.tries)] if self.tries else []
        words += ["--url", self.url, "--upstream-port", str(self.upstream_port)] if self.url else []
        words += ["--all"] if self.every else []
        return Setting(self.command, tuple(words), name="check-gateway")


def run_gateway(options: GatewayOptions) -> int:
    """Judges a gateway; returns the exit code.

    0: right, or as `--known-failing` lists it. 1: there are mistakes. 2: not all was judged, or the
    control run without a gateway is not all right.
    """
    gateway = _gateway(options)
    listed = gateway_cases(options.pair, every=options.every)
    cases = choose(listed, options.only, case_forms, "case")
    client = _client(options)
    left_out = outside(options.pair, every=options.every, priced=gateway.prices is not None)
    arguments = {"rounds": options.rounds, "all": options.every, "outside": left_out}
    empty = results_of_today(client, str(options.pair), GATEWAY_LEVEL, arguments)
    names = tuple(f"{case.name}:{rule}" for case in listed for rule in GATEWAYS)
    lists = known_lists(options.reporting, names)
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
    return report(options.reporting, judged.results, names, *lists)


def _gateway(options: GatewayOptions) -> Gateway:
    """The gateway that is judged: a preset, and options in place of its parts."""
    pair, words = options.pair, options.command
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
        headers={**known.headers, **_headers(options.header)},
        tries=options.tries or known.tries,
        rounds=options.rounds,
        unsupported={**known.unsupported, **_reasons(options.unsupported)},
        prices=_prices(options.prices),
        setting=options.setting,
    )


def _headers(texts: Iterable[str]) -> dict[str, str]:
    try:
        pairs = [read_pair(text, "x-virtual-key=abc") for text in texts]
        if wrong := next((name for name, _ in pairs if ":" in name), ""):
            raise ValueError(f"must be KEY=VALUE, such as x-virtual-key=abc, got {wrong!r}")
    except ValueError as error:
        raise UsageError(f"--header {error}") from None
    return {name.lower(): value for name, value in pairs}


def _reasons(texts: Iterable[str]) -> dict[str, str]:
    try:
        return dict(read_pair(text, "calls=one call at a time") for text in texts)
    except ValueError as error:
        raise UsageError(f"--unsupported {error}") from None


def _prices(text: str | None) -> Prices | None:
    try:
        return None if text is None else Prices.of(text)
    except ValueError as error:
        raise UsageError(f"prices {error}") from None


def _client(options: GatewayOptions) -> Client:
    """The gateway's name in the results."""
    if options.preset:
        return preset_client(options.preset)
    adapter = shlex.join(options.command) or options.url or ""
    return Client(Path(adapter.split()[0]).name, adapter=adapter)
