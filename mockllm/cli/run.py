"""`mockllm run`: a server for the time that a command runs, then a verdict on its requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from mockllm.cli.options.parameters import (
    ProgramCommand,
    agent_options,
    answering_options,
    cassettes_option,
    fault_options,
    intercept_options,
    latency_options,
    match_ignore_option,
    path_options,
    quota_options,
    scenarios_option,
    server_options,
)
from mockllm.cli.serving.cassettes import ScenarioSources, cassettes_of
from mockllm.cli.serving.child import LedCommand, run_beside
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import UsageError
from mockllm.core.text import quantity
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario

_GRACE = 1.0


@click.command(cls=ProgramCommand)
@scenarios_option("What to serve; may be repeated. Default: the scenarios that come with mockllm.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="0 picks a free one.",
)
@answering_options
@cassettes_option
@server_options(dict, match_ignore_option())
@path_options
@click.option(
    "--leave-out",
    "leave_out",
    multiple=True,
    metavar="NAME",
    help="A rule of conversations that is not judged; may be repeated.",
)
@click.option(
    "--require",
    multiple=True,
    metavar="NAME",
    help="A rule that is not judged otherwise: extra-request, text-in-history, or one about tries, "
    "such as retry-after-honoured.",
)
@click.option(
    "--allow-unplayed",
    is_flag=True,
    help="Do not report turns that were not played.",
)
@click.option(
    "--allow-no-requests",
    is_flag=True,
    help="Do not fail where no request came.",
)
@click.option(
    "--depth",
    type=click.IntRange(1),
    default=50,
    help="How many requests in a row a client may make for a model that never stops.",
)
@fault_options
@quota_options
@latency_options
@intercept_options("intercept", "tunnel")
@agent_options("2m")
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[PATH...] -- CMD..."
)
@click.pass_context
def run(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    cassettes: tuple[Path, ...],
    port: int,
    server: dict[str, Any],
    leave_out: tuple[str, ...],
    require: tuple[str, ...],
    command: tuple[str, ...],
    agent: str,
    timeout: int,
    **rules: Any,
) -> None:
    """Run CMD against a server of its own, with the scenarios of PATH, then judge its requests.

    The environment of CMD leads the SDKs to the server: their base URLs and API keys are set,
    and MOCKLLM_URL. With --intercept there are no base URLs: what CMD sends to the services
    themselves comes to the server, through a proxy whose certificates CMD trusts.

    The verdict, on standard error, names requests that nothing answered or that were refused,
    rules of conversations that were broken, and turns that were not played of the scenarios
    that were begun. It is bad, too, if no request came. The exit code is that of CMD; where that
    is 0, it is 1 if the verdict is bad, or if some requests could not be judged.

    With --agent, CMD are the words for a coding agent: the prompt, and options of its own. It gets
    a HOME and settings of its own, asks for no permission, reads no standard input, and is ended
    after --timeout.

    \b
    Examples:
      mockllm run -- pytest tests/
      mockllm run scenarios/ -- pytest tests/
      mockllm run --cassettes tests/cassettes -- python agent.py
      mockllm run scenarios/ --speed 0 -- python agent.py
      mockllm run --fallback auto -- sh -c 'curl -s $OPENAI_BASE_URL/models'
      mockllm run --fault cut:after=3events --fault-rate 10% -- python agent.py
      mockllm run --intercept known -- python agent.py
      mockllm run scenarios/ --agent claude -- "write hello.txt"
    """
    from mockllm.serve.server.options import ServerOptions
    from mockllm.serve.server.thread import ServerThread

    _check_names("--leave-out", leave_out)
    _check_names("--require", require)
    exchanges: list[Exchange] = []
    options = ServerOptions(
        **server,
        port=port,
        grace=_GRACE,
        log=exchanges.append,
        notice=partial(echo, err=True),
    )
    sources = ScenarioSources(paths, cassettes_of(cassettes, server["ignore"]))
    thread = ServerThread(sources.load(), options)
    code = run_beside(thread, LedCommand(command, agent, timeout / 1e6))
    report = judge(
        exchanges,
        thread.server.sessions,
        thread.server.player.served.by_name,
        thread.server.sessions.evicted,
        leave_out=frozenset(leave_out),
        require=frozenset(require),
        **rules,
    )
    for line in report.lines:
        echo(line, err=True)
    if not exchanges and not agent:
        from mockllm.conformance.agents.launch import advise

        if line := advise(command[0]):
            echo(f"  {line}", err=True)
    context.exit(code or (0 if report.good else 1))


def _check_names(option: str, names: tuple[str, ...]) -> None:
    """Refuses a name that no rule has before the command runs, not after."""
    if names:  # the import takes longer than starting the server
        from mockllm.checking.conversations.judge import check_names

        try:
            check_names(names)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None


_MOST_SHOWN = 20
"""Of one kind of mistakes."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """Whether the requests were right, and the lines of the report."""

    good: bool
    lines: tuple[str, ...]


def judge(
    exchanges: Sequence[Exchange],
    sessions: Iterable[Session],
    scenarios: Mapping[str, Scenario],
    evicted: Sequence[str] = (),
    *,
    allow_no_requests: bool = False,
    **rules: Any,
) -> RunReport:
    """Bad are requests that nothing answers or that are refused, conversation invariants that
    are broken, and turns that were not played of scenarios that were begun, in any session. A
    session that cannot be judged as a whole is reported, too. Remarks are shown, and are not bad.
    A run without any request is bad.

    Args:
        evicted: the names of sessions that the server has dropped.
        allow_no_requests: whether it is right that no request came in any session.
    """
    from mockllm.checking.conversations.judge import verify
    from mockllm.checking.conversations.verification import (
        NO_REQUESTS,
        each_once,
        request_mistakes,
    )

    mistakes = [  # of the log, which has the requests of sessions that are gone, too
        (mistake, _place(exchange))
        for exchange in exchanges
        for mistake in request_mistakes(exchange)
    ]
    by_kind: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for session in sessions:
        verification = verify(session, scenarios, allow_no_requests=True, **rules)
        where = _in_session(session.name)
        mistakes += [
            (mistake, where)
            for mistake in verification.mistakes
            if mistake.kind in ("violations", "unplayed", "unknown")
        ]
        by_kind["remark"] += [f"remark: {remark}{where}" for remark in verification.remarks]
    for mistake in each_once(mistakes):
        text = "\n    ".join([mistake.text, *mistake.more])
        by_kind.get(mistake.kind, by_kind["refused"]).append(text)
    by_kind["unknown"] += [
        f"verdict unknown: it was dropped, as there were too many (session {name})"
        for name in evicted
    ]
    by_kind["repeated"] += _repeated_turns(exchanges)
    summary = _summary(exchanges) if exchanges else NO_REQUESTS.text
    lines = [f"mockllm: {summary}"]
    for items in by_kind.values():
        lines += [line for item in items[:_MOST_SHOWN] for line in f"  {item}".split("\n")]
        if len(items) > _MOST_SHOWN:
            lines.append(f"  ... and {len(items) - _MOST_SHOWN} more")
    is_empty = not (exchanges or allow_no_requests)
    if is_empty:
        lines.append("  --allow-no-requests accepts it")
    return RunReport(not (mistakes or evicted or is_empty), tuple(lines))


_KINDS = ("refused", "violations", "unplayed", "repeated", "missed_faults", "unknown", "remark")
"""In the order of the report."""


def _place(exchange: Exchange) -> str:
    turn = f", turn {exchange.turn + 1} of {exchange.scenario}" if exchange.turn is not None else ""
    session = _in_session(exchange.session)
    return f" ({exchange.received.method} {exchange.path}{turn}){session}"


def _in_session(name: str) -> str:
    return "" if name in ("", "default") else f" (session {name})"


def _repeated_turns(exchanges: Sequence[Exchange]) -> list[str]:
    """The recordings that were played again: more requests came than were recorded. It is no
    mistake by itself; with `--require extra-request` it is an `extra-request`."""
    repeated = Counter(
        f"played again: turn {(exchange.turn or 0) + 1} of {exchange.scenario}"
        for exchange in exchanges
        if exchange.played.repeated
    )
    return [
        f"{what}, {quantity(count, 'time')}; it was recorded once"
        for what, count in repeated.items()
    ]


def _summary(exchanges: Sequence[Exchange]) -> str:
    outcomes = Counter[str](
        exchange.played.cause if exchange.outcome == "error" else exchange.outcome
        for exchange in exchanges
    )
    labels = {
        "played": "played",
        "scenario": "answered with the error that the scenario asks for",
        "quota": "refused by --quota",
        "capacity": "refused, as there was no slot",
        "state store": "refused, as the state store was away",
        "service": "that no service answered",
        "auxiliary": "beside the conversation",
        "unmatched": "unmatched",
        "invalid": "refused",
        "unknown route": "for an unknown route",
        "failed": "that mockllm failed on",
    }
    counts = [f"{outcomes[name]} {label}" for name, label in labels.items() if outcomes[name]]
    return f"{quantity(len(exchanges), 'request')}: {', '.join(counts)}"
