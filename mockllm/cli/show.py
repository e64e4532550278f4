"""`mockllm show` and `mockllm export`: a scenario for clients and for other tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mockllm.cli.options.parameters import (
    API,
    HTTP_API,
    path_arguments,
    quirk_option,
    read_scenarios,
)
from mockllm.cli.terminal.output import echo, write_bytes
from mockllm.core.errors import MockLLMError, UsageError
from mockllm.core.text import did_you_mean
from mockllm.scenario.model import Api, Scenario

if TYPE_CHECKING:
    from mockllm.core.http import Ending
    from mockllm.play.faults.transmission import Transmission
    from mockllm.play.replay.compilation.gates import AnswerGate
    from mockllm.play.replay.compilation.http_answer import HttpAnswer
    from mockllm.play.replay.compilation.tape_player import RecordedAnswer
    from mockllm.wire.protocols.base import WireProtocol


def scenario_names(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names that a shell completes."""
    try:
        names = (name for key in ("paths", "named") for name in context.params.get(key) or ())
        scenarios = read_scenarios(tuple(map(Path, names)))
    except (MockLLMError, OSError):
        return []
    return [scenario.name for scenario in scenarios if scenario.name.startswith(incomplete)]


@click.command()
@click.argument("scenario", shell_complete=scenario_names)
@path_arguments("[PATH]...")
@click.option("--api", type=API, help="Default: the first that the scenario plays.")
@click.option("--turn", type=click.IntRange(min=1), default=1)
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    help="Which try of a turn that fails at first; default: the one that succeeds.",
)
@click.option(
    "--form",
    type=click.IntRange(min=0),
    help="Which form of the turn: 0 is the turn itself, the others are entries of its `when` and "
    "`one_of`, in their order; default: that which answers where no condition holds.",
)
@click.option("--body", is_flag=True, help="The answer to a request without `stream`.")
@quirk_option("the stream")
@click.option("--timing", is_flag=True, help="Print when each event is due before it.")
@click.option(
    "--request",
    type=click.File("rb"),
    metavar="FILE",
    help="The JSON body that the client sends, - for standard input; default: a minimal one.",
)
def show(
    scenario: str,
    paths: tuple[Path, ...],
    api: str | None,
    turn: int,
    attempt: int | None,
    form: int | None,
    body: bool,
    quirks: tuple[str, ...],
    timing: bool,
    request: Any,
) -> None:
    """Print the exact bytes of a turn of SCENARIO, which PATH or else mockllm has.

    They are what a client gets for a streamed answer, or with --body for one that is not. A
    turn that is an HTTP error is shown with its status line and headers. In place of a scenario
    this may be a case of `mockllm check`, by its name. Frames of an AWS event stream are binary;
    each is shown as a line with its kind, name and payload.

    \b
    Examples:
      mockllm show secret-numbers --api responses
      mockllm show secret-numbers --turn 2 --timing
      mockllm show weather scenarios/ --api chat --body | jq .
      mockllm show rate-limited --attempt 1
      mockllm show parallel-tools --quirk chat-index-all-zero
      mockllm show chat/sample-call+chat-index-missing
      echo '{"stream_options": {"include_usage": true}}' | mockllm show unicode --request -
    """
    from mockllm.core.jsontext import parse_object
    from mockllm.play.replay.turn_answer import route_turn_answer, turn_answer, usual_request

    if is_case(scenario):
        _print(_case_answer(scenario, paths), timing)
        return
    chosen = scenario_named(scenario, (*read_scenarios(paths), *_samples(scenario)))
    if chosen.server is not None:
        raise UsageError(f"{scenario!r} is an MCP server, which has no turns")
    if chosen.route is not None:
        if api is not None:
            raise UsageError(f"scenario {scenario!r} answers {chosen.route}; leave --api out")
        _print(route_turn_answer(chosen, turn - 1, on_reply=_report_reply), timing)
        return
    protocol = _protocol(chosen, api or _met_in(quirks, chosen) or _recorded_over(chosen, turn - 1))
    fields = {} if request is None else parse_object(request.read())
    sent = usual_request(chosen, protocol, stream=not body, fields=fields)
    answer = turn_answer(
        chosen,
        turn - 1,
        protocol,
        sent,
        attempt=attempt,
        form=form,
        quirks=quirks,
        on_reply=_report_reply,
    )
    _print(answer, timing)


def is_case(name: str) -> bool:
    """Whether a name is that of a case: `API/SCENARIO`, with a quirk and a variation or without."""
    from mockllm.wire.protocols import PROTOCOLS

    return name.partition("/")[0] in PROTOCOLS and not Path(name).exists()


def _case_answer(name: str, paths: tuple[Path, ...]) -> HttpAnswer:
    from mockllm.conformance.case_names import spec_named

    return spec_named(name, read_scenarios(paths)).compile().answer


def _report_reply(played: RecordedAnswer) -> None:
    reason = "; ".join((played.why, *played.problems))
    echo(f"mockllm: the reply, not the recording ({reason})", err=True)


def _print(answer: HttpAnswer, timing: bool) -> None:
    for data in _format(answer, timing):
        write_bytes(data)
    if not answer.streamed and sys.stdout.isatty():
        echo()
    for gate in answer.gates:
        echo(f"mockllm: {_gate_line(gate)}", err=True)
    if answer.fault is not None:
        echo(f"mockllm: {_fault_line(answer, answer.fault)}", err=True)


_ENDINGS: dict[Ending, str] = {
    "complete": "the answer ends in order",
    "closed": "the connection is closed",
    "reset": "the connection is reset",
    "chunk": "the connection is closed in an HTTP chunk that is longer than what came",
    "open": "nothing more comes, and the connection stays open",
}


def _gate_line(gate: AnswerGate) -> str:
    from mockllm.play.replay.compilation.gates import BEFORE_HEAD
    from mockllm.scenario.durations import duration

    at_head = gate.before == BEFORE_HEAD
    before = "before status and headers" if at_head else f"after {gate.before:,} bytes"
    limit = duration(gate.gate.limit)
    return f"{before}, the answer waits at the gate {gate.gate.name!r}, for {limit} at most"


def _fault_line(answer: HttpAnswer, note: Transmission) -> str:
    if note.missed:
        return f"the fault does not strike: {note.missed}"
    if not note.has_head:
        return f"fault {note.faults}: no answer is sent; {_ENDINGS[answer.ending]}"
    return f"fault {note.faults}: {answer.size} bytes are sent; {_ENDINGS[answer.ending]}"


def _samples(name: str) -> tuple[Scenario, ...]:
    if not name.startswith("sample-"):
        return ()
    from mockllm.play.quirks.samples import SAMPLES

    return tuple(SAMPLES.values())


def scenario_named(name: str, scenarios: tuple[Scenario, ...]) -> Scenario:
    """The scenario of a name."""
    by_name = {scenario.name: scenario for scenario in scenarios}
    if name not in by_name:
        hint = did_you_mean(name, by_name, "`mockllm list` shows them all", most=3)
        if Path(name).exists():
            hint = f"it is a path: name a scenario of it, and the path with --scenarios {name}"
        raise UsageError(f"there is no scenario {name!r} among {len(by_name)}; {hint}")
    return by_name[name]


def _met_in(quirks: tuple[str, ...], scenario: Scenario) -> str | None:
    """The first API of a scenario that all the quirks are met in."""
    from mockllm.play.quirks import find
    from mockllm.wire.protocols import PROTOCOLS

    wanted = [find(name)[0] for name in quirks]
    apis = scenario.apis or PROTOCOLS if wanted else ()
    return next((api for api in apis if all(quirk.applies_to(api) for quirk in wanted)), None)


def _protocol(scenario: Scenario, api: str | None) -> WireProtocol:
    from mockllm.wire.protocols import PROTOCOLS

    playable = [name for name in PROTOCOLS if scenario.plays_over(name)]
    if not playable or (api is not None and api not in playable):
        over = f"over {api}" if api else "yet"
        raise UsageError(
            f"scenario {scenario.name!r} does not play {over}; it plays over: "
            f"{', '.join(playable) or 'none of ' + ', '.join(PROTOCOLS)}"
        )
    return PROTOCOLS[api or playable[0]]


def _recorded_over(scenario: Scenario, position: int) -> str | None:
    """The API over which a turn was recorded."""
    from mockllm.play.matching.conversation import turn_index
    from mockllm.play.replay.compilation.tape_player import load

    index = turn_index(scenario, position)
    recorded = None if index is None else scenario.turns[index].recorded
    try:
        return None if recorded is None else load(recorded).api
    except (MockLLMError, OSError):
        return None


def _format(answer: HttpAnswer, timing: bool) -> Iterator[bytes]:
    from mockllm.wire.framing.frame_text import readable

    if answer.status != 200:
        yield answer.head()
    for at, data in zip(answer.times, readable(answer.data), strict=True):
        if not timing:
            yield data
            continue
        due = f"+{at / 1_000_000:.3f}s "
        lines = data.splitlines(keepends=True)
        indent = b" " * len(due)
        yield due.encode() + b"".join(
            indent + line if number and line.strip() else line for number, line in enumerate(lines)
        )


@click.command()
@click.argument("scenario", shell_complete=scenario_names)
@path_arguments("[PATH]...")
@click.option("--to", "kind", type=click.Choice(["vcr"]), required=True, help="What to write.")
@click.option(
    "--api",
    type=HTTP_API,
    help="Default: that of the recording, or the first that the scenario plays.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Default: standard output.",
)
def export(
    scenario: str, paths: tuple[Path, ...], kind: str, api: Api | None, output: Path | None
) -> None:
    """Write SCENARIO as a VCR cassette, as vcrpy and pytest-recording replay it.

    Recorded turns are exported as they were recorded, with their requests. The others are requested
    as a client of the API would, streamed. A cassette has no times and no cuts between chunks.

    \b
    Examples:
      mockllm export secret-numbers --to vcr > cassette.yaml
      mockllm export weather --scenarios scenarios/ --to vcr --api anthropic -o cassette.yaml
    """
    from mockllm.record.importers.export import cassette, exchanges

    text = cassette(exchanges(scenario_named(scenario, read_scenarios(paths)), api)).encode()
    if output is not None:
        output.write_bytes(text)
        return
    write_bytes(text)
