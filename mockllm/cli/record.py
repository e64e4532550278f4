"""`mockllm record`: a server between a client and the real services, which writes scenarios."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from mockllm.cli.options.parameters import fault_options
from mockllm.cli.options.recording import output_option, record_options, recording_options
from mockllm.cli.serving.listening import (
    Loop,
    listening_options,
    run_server,
    uncollected,
)
from mockllm.cli.serving.server_log import ServerLog
from mockllm.cli.serving.stop_signals import ended_at_once


@click.command()
@output_option
@recording_options
@listening_options
@fault_options
def record(
    output: Path,
    server: dict[str, Any],
    log_format: Literal["text", "json"],
    quiet: bool,
    loop: Loop,
    **recording: Any,
) -> None:
    """Pass requests on to the real services, and write what they answer as scenarios.

    Clients get the address of this server in place of the service's, and keep their own
    credentials, which are passed on and never written. Each conversation becomes a scenario in
    DIR, with the exact bytes beside it; what is there already stays, and conversations that
    were broken off go on. `mockllm serve DIR` plays them.

    \b
    Examples:
      mockllm record --upstream https://api.openai.com -o scenarios/recorded
      mockllm record --upstream anthropic=https://api.anthropic.com -o recorded --port 0
      mockllm record --upstream http://127.0.0.1:8000 -o recorded --match user,model
      mockllm record --upstream https://api.openai.com -o recorded --fault cut:after=3events
    """
    options = record_options(output, "add", **recording)
    with ended_at_once(), uncollected():
        from mockllm.recording.store.folder import Folder
        from mockllm.server.app import MockServer
        from mockllm.server.options import ServerOptions

        # A folder that cannot be loaded is an error before the server listens.
        Folder(output).scenarios()
        report = ServerLog(log_format, quiet=quiet)
        recorded = replace(options, report=report.recorded, waiting=report.waiting)
        log = None if quiet else report.exchange
        recorder = MockServer((), ServerOptions(**server, log=log, record=recorded))
    run_server(recorder, report, loop)
