"""`mockllm serve` and `mockllm record`: servers that run until a signal stops them.

The one plays scenarios over HTTP. The other is between a client and the real services, and writes
scenarios.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mockllm.cli.options.config import file_key
from mockllm.cli.options.headings import ServerCommand
from mockllm.cli.options.parameters import (
    agent_options,
    answering_options,
    capacity_options,
    cassettes_option,
    fault_options,
    intercept_options,
    is_scenarios,
    latency_options,
    match_ignore_option,
    missing_path_hint,
    path_arguments,
    quirk_option,
    quota_options,
    served_scenarios,
    server_options,
)
from mockllm.cli.options.recording import (
    output_option,
    record_options,
    redaction_options,
    upstream_options,
)
from mockllm.cli.serving.cassettes import ScenarioSources, cassettes_of
from mockllm.cli.serving.listening import Loop, listening_options, pause_collection, run_server
from mockllm.cli.serving.server_log import LogOptions, ServerLog
from mockllm.cli.serving.stop_signals import ended_at_once
from mockllm.core.errors import UsageError
from mockllm.scenario.model import Scenario

if TYPE_CHECKING:
    from mockllm.cli.serving.child import LedCommand
    from mockllm.serve.server.options import RecordMode, RecordOptions, ServerOptions


@click.command(cls=ServerCommand)
@output_option
@upstream_options
@redaction_options()
@server_options(dict, match_ignore_option())
@listening_options
@fault_options
@intercept_options("proxy", "proxy_port", "intercept")
@agent_options("10m")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
@click.pass_context
def record(
    context: click.Context,
    /,
    output: Path,
    server: dict[str, Any],
    log: LogOptions,
    loop: Loop,
    command: tuple[str, ...],
    agent: str,
    timeout: int,
    **recording: Any,
) -> None:
    """Pass requests on to the real services, and write what they answer as scenarios.

    Clients get the address of this server in place of the service's, and keep their own
    credentials, which are passed on and never written. Each conversation becomes a scenario in
    DIR, with the exact bytes beside it; what is there already stays, and conversations that
    were broken off go on. `mockllm serve DIR` plays them.

    With --proxy or --intercept, clients need no address: what they send to the services goes
    through a proxy, with certificates that they have to trust. With CMD, it is led there, and
    what it did is written when it ends; the exit code is that of CMD. With --agent, CMD are the
    words for a coding agent, as in `mockllm run`; its key is read from the environment.

    \b
    Examples:
      mockllm record --upstream https://api.openai.com -o scenarios/recorded
      mockllm record --upstream anthropic=https://api.anthropic.com -o recorded --port 0
      mockllm record --upstream http://127.0.0.1:8000 -o recorded --match user,model
      mockllm record --upstream https://api.openai.com -o recorded --fault cut:after=3events
      mockllm record --intercept api.cohere.com -o recorded -- python agent.py
      mockllm record --upstream https://api.anthropic.com -o recorded --agent claude -- "fix it"
    """
    if agent and not command:
        raise UsageError(f"--agent {agent} needs a prompt: -- 'write hello.txt'")
    if command and not agent and is_scenarios(command[0]):
        raise UsageError("record serves no scenarios, and writes them to --output: leave PATH out")
    intercepts = server["intercept"] is not None
    if command and context.get_parameter_source("port") is ParameterSource.DEFAULT:
        server["port"] = 0  # nobody else has to find it
    options = record_options(output, "add", server["ignore"], intercepts=intercepts, **recording)
    with ended_at_once(), pause_collection():
        from mockllm.record.recording.store.folder import Folder
        from mockllm.serve.server.app import MockServer
        from mockllm.serve.server.options import ServerOptions

        # A folder that cannot be loaded is an error before the server listens.
        Folder(output).scenarios()
        report = ServerLog(log)
        recorded = _reporting(options, report)
        served = ServerOptions(
            **server,
            log=report.requests,
            record=recorded,
            notice=report.notice,
        )
    if command:
        from mockllm.cli.serving.child import LedCommand

        program = LedCommand(command, agent, timeout / 1e6)
        context.exit(_record_command(served, report, program))
    run_server(MockServer((), served), report, loop)


def _record_command(options: ServerOptions, report: ServerLog, program: LedCommand) -> int:
    """Records while a command runs; its exit code, or 1 if something is not recorded."""
    # Imported here: a server that runs alone listens sooner without them.
    from mockllm.cli.serving.child import run_beside
    from mockllm.serve.server.thread import ServerThread

    assert options.record is not None
    replay = ["mockllm", "run", "--scenarios", str(options.record.folder)]
    if options.intercept is not None:
        replay += ["--intercept", ",".join(options.intercept.hosts.named) or "known"]
    if program.agent:
        replay += ["--agent", program.agent]
    report.begin_beside(f"{shlex.join(replay)} -- CMD")
    code = run_beside(ServerThread((), options), program, keeps_keys=True)
    missing = report.summary()
    return code or missing


@click.command(cls=ServerCommand)
@path_arguments("PATH...", click.Path(path_type=Path))
@cassettes_option
@answering_options
@quirk_option("every stream")
@click.option("--reload", is_flag=True, help="Load the files again when they change.")
@listening_options
@click.option(
    "--record",
    "mode",
    type=click.Choice(["none", "once", "new_episodes", "all"]),
    help="What the real services answer, and is recorded: nothing; everything, if the folder is "
    "empty; what no scenario answers; everything, in place of what is there.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where recordings go; default: the folder that is served.",
)
@upstream_options
@redaction_options(file_key)
@server_options(dict, match_ignore_option(file_key))
@fault_options
@quota_options
@latency_options
@capacity_options
@intercept_options("proxy", "proxy_port", "intercept", "tunnel")
@server_options(
    lambda metrics: {"metrics": metrics or ("mockllm",)},
    file_key(
        "--metrics-names",
        "metrics",
        type=click.Choice(["mockllm", "vllm", "otel"]),
        multiple=True,
        help="Whose names the figures at /metrics have: mockllm's, vLLM's or OpenTelemetry's; the "
        "last two name models. May be repeated. Default: mockllm.",
    ),
)
@server_options(
    dict,
    click.option("--tls", is_flag=True, help="Speak TLS, with a certificate of this process."),
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    metavar="N",
    help="Serve in so many processes on one port, one for each core; they share their state.",
)
@click.option(
    "--state",
    default="",
    show_default=False,
    metavar="URL",
    help="Where sessions are kept that several servers share: redis://HOST:PORT/DATABASE (Valkey "
    "or Redis), or sqlite:FILE on one machine.",
)
def serve(
    paths: tuple[Path, ...],
    cassettes: tuple[Path, ...],
    quirks: tuple[str, ...],
    reload: bool,
    server: dict[str, Any],
    log: LogOptions,
    loop: Loop,
    mode: RecordMode | None,
    output: Path | None,
    workers: int,
    state: str,
    **recording: Any,
) -> None:
    """Serve the scenarios of files and folders.

    The first line on standard output is `mockllm listening on http://HOST:PORT`. Then come the
    scenarios, the base URL for each client, and a line for each request.

    \b
    Examples:
      mockllm serve scenarios/
      mockllm serve scenarios/ --port 0 --quiet
      mockllm serve --cassettes tests/cassettes
      mockllm serve weather.yaml --reload --speed 0
      mockllm serve --fallback auto --log-format json
      mockllm serve scenarios/ --quirk sse-crlf
      mockllm serve scenarios/ --fault cut:after=3events --fault-rate 10% --fault-seed 7
      mockllm serve scenarios/ --quota 'requests=60 tokens=10000 by=key'
      mockllm serve scenarios/ --workers 4
      mockllm serve scenarios/ --state redis://127.0.0.1:6379/0
      mockllm serve scenarios/ --record new_episodes --upstream https://api.openai.com
      mockllm serve scenarios/ --proxy --intercept api.cohere.com
    """
    if not (paths or cassettes) and (not server["fallback"] or reload or mode is not None):
        raise UsageError(
            "serve needs files or folders with scenarios; `mockllm init scenarios` writes a "
            "first one, then: mockllm serve scenarios; or let it answer all requests by itself: "
            "mockllm serve --fallback auto; or play recordings of other tools: "
            "mockllm serve --cassettes DIR"
        )
    record = _optional_recording(paths, output, mode, server, recording)
    target = None if record is None else record.folder
    _check_processes(workers, state, server, record)
    if workers > 1 and cassettes and reload:
        raise UsageError("--cassettes with --reload needs one process, without --workers")
    _check_there(paths, target)
    report = ServerLog(log)
    if record is not None:
        record = _reporting(record, report)
    with ended_at_once(), pause_collection():
        from mockllm.serve.server.app import MockServer
        from mockllm.serve.server.options import ServerOptions

        options = ServerOptions(
            **server,
            quirks=quirks,
            log=report.requests,
            record=record,
            state=state,
            notice=report.notice,
        )
        sources = ScenarioSources(paths, cassettes_of(cassettes, server["ignore"]))
        given = sources.folders()
        if workers > 1:
            options = replace(options, log=None, notice=None)
            # Imported here: one process listens sooner without them.
            from mockllm.cli.serving.workers import WorkerPlan, serve_with_workers

            serve_with_workers(WorkerPlan(given, options, loop, log, reload), workers)
            return
        serving = MockServer(_scenarios(given, target), options)
    run_server(serving, report, loop, sources if reload else None)


def _reporting(record: RecordOptions, report: ServerLog) -> RecordOptions:
    """The options of a recording whose lines are those of a server."""
    return replace(record, report=report.write_recording, waiting=report.waiting)


def _optional_recording(
    paths: tuple[Path, ...],
    output: Path | None,
    mode: RecordMode | None,
    server: dict[str, Any],
    recording: dict[str, Any],
) -> RecordOptions | None:
    """The options of a recording; None without --record."""
    if mode is not None:
        intercepts, folder = server["intercept"] is not None, _target(paths, output)
        return record_options(folder, mode, server["ignore"], intercepts=intercepts, **recording)
    if output is not None or any(recording.values()):
        raise UsageError(
            "--output, --upstream and the other options of recordings need --record, such as "
            "--record new_episodes"
        )
    return None


def _target(paths: tuple[Path, ...], output: Path | None) -> Path:
    if output is not None:
        return output
    if len(paths) == 1 and not paths[0].is_file():
        return paths[0]
    raise UsageError("--record needs to know where to: serve one folder, or name one with --output")


def _check_processes(
    workers: int, state: str, server: dict[str, Any], record: RecordOptions | None
) -> None:
    """Refuses what needs one process where there are several."""
    if record is not None and (workers > 1 or state):
        raise UsageError(
            "--record needs one process with a state of its own; leave out --workers and --state"
        )
    if workers > 1 and server["intercept"] is not None:
        raise UsageError("--proxy needs one process, without --workers")
    if workers > 1 and server["tls"]:
        raise UsageError("--tls needs one process, without --workers: each has its own certificate")


def _check_there(paths: tuple[Path, ...], target: Path | None) -> None:
    """Refuses missing paths, except the folder that is recorded to."""
    for path in paths:
        if not path.exists() and path != target:
            message = f"Path '{path}' does not exist.{missing_path_hint(path)}"
            raise click.BadParameter(message, param_hint="'PATH...'")


def _scenarios(paths: tuple[Path, ...], target: Path | None) -> tuple[Scenario, ...]:
    """The scenarios of the paths; the one that is recorded to may have none."""
    if target not in paths:
        return served_scenarios(paths)
    from mockllm.record.recording.store.folder import Folder

    others = tuple(path for path in paths if path != target)
    recorded = Folder(target).scenarios()
    return served_scenarios(others) + recorded
