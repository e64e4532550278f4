"""`mockllm check` and `check-gateway`: clients and gateways, judged by the checking kit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mockllm.cli.options.config import file_key
from mockllm.cli.options.parameters import (
    API,
    HTTP_API,
    ProgramCommand,
    collect,
    scenarios_option,
    together,
)

if TYPE_CHECKING:
    from mockllm.cli.check.options import ReportOptions

_FILE = click.Path(dir_okay=False, path_type=Path)
_OLD_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ONLY = click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Only the cases of this name or quirk, with * and ?; may be repeated.",
)

_CHOOSING = (
    click.option("--api", type=API, help="The API that the client speaks."),
    scenarios_option(
        "Answers to check besides the kit's own; may be repeated. Default: the scenarios that come "
        "with mockllm."
    ),
    _ONLY,
    click.option(
        "--variations",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Further ways of cutting each answer into events and bytes.",
    ),
    click.option("--seed", default="0", metavar="TEXT", help="Of the variations."),
    file_key("--no-quirks", is_flag=True, help="Leave out quirks and the kit's scenarios."),
    click.option(
        "--policy",
        "choices",
        multiple=True,
        metavar="KEY=VALUE",
        help="What the client does where good designs differ, such as malformed=skip.",
    ),
)
"""The options that choose the cases."""


_ATTACHING = (
    click.option(
        "--level",
        type=click.Choice(["bytes", "payloads"]),
        default="bytes",
        help="What the runner gets: bytes, or decoded events.",
    ),
    click.option("--http", is_flag=True, help="CMD is a whole client, which gets base URLs."),
    click.option("--per-case", is_flag=True, help="With --http: start CMD for each case."),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="So many programs run side by side.",
    ),
    file_key(
        "--window",
        type=click.IntRange(min=1),
        default=64,
        metavar="N",
        help="So many cases are sent ahead to each program.",
    ),
    click.option(
        "--limit",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="For each case. Default: 5, 30 with --http, its own with --faults.",
    ),
    click.option(
        "--faults",
        is_flag=True,
        help="With --http: break connections and answers, and judge what the client does.",
    ),
    click.option(
        "--rule",
        "rules",
        multiple=True,
        metavar="NAME",
        help="With --faults: judge this rule only; may be repeated.",
    ),
    click.option(
        "--cuts",
        is_flag=True,
        help="Cut streams at every place, and judge whether each cut is reported.",
    ),
    click.option(
        "--self-test",
        is_flag=True,
        help="Look for mistakes of the runner instead of the client's.",
    ),
    click.option(
        "--emit",
        type=_FILE,
        metavar="FILE",
        help="Write the cases to a file, for a runner that cannot be started here.",
    ),
    click.option(
        "--judge",
        type=_OLD_FILE,
        metavar="FILE",
        help="Judge the answers in a file, which such a runner wrote.",
    ),
    click.option("--no-shrink", is_flag=True, help="Do not look for the smallest streams."),
)
"""The options for how the client is attached."""


_REPORTING = (
    click.option(
        "-o",
        "--output",
        "results",
        type=_FILE,
        metavar="FILE",
        help="The results file. Default: mockllm-results/CLIENT-API.json.",
    ),
    click.option("--junit", type=_FILE, metavar="FILE", help="Also write a JUnit file."),
    click.option(
        "--html",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Also write pages; needs mockllm-harness[report].",
    ),
    click.option("--badge", type=_FILE, metavar="FILE", help="Also write an SVG badge."),
    click.option(
        "--known-failing",
        type=_FILE,
        metavar="FILE",
        help="Cases that fail, a pattern each; one that passes fails the run.",
    ),
    click.option("--known-flaky", type=_OLD_FILE, metavar="FILE", help="Cases that fail at times."),
    click.option("--update", is_flag=True, help="Write the --known-failing file."),
)
"""The options for what is written."""


def _reporting(_: None, **values: Any) -> ReportOptions:
    from mockllm.cli.check.options import ReportOptions

    return ReportOptions(**values)


_GATEWAYS = (
    click.option("--down", type=HTTP_API, required=True, help="The API that clients of CMD speak."),
    click.option(
        "--up", type=HTTP_API, required=True, help="The API that the upstream of CMD speaks."
    ),
    _ONLY,
    click.option("--preset", metavar="NAME", help="A gateway that `mockllm list presets` has."),
    click.option(
        "--template",
        type=_OLD_FILE,
        multiple=True,
        metavar="FILE",
        help="A file of the gateway, copied to {dir} with {upstream}, {port}, {dir} and {model} "
        "filled in, as in CMD.",
    ),
    click.option("--model", metavar="NAME", help="The model that requests to the gateway name."),
    click.option(
        "--header", multiple=True, metavar="NAME=VALUE", help="A header of requests to the gateway."
    ),
    click.option("--ready", default="", metavar="PATH", help="Answers once the gateway is ready."),
    click.option(
        "--tries",
        type=click.IntRange(min=1),
        metavar="N",
        help="Requests that a gateway may send upstream for one that fails. Default: 1.",
    ),
    file_key(
        "--rounds",
        type=click.IntRange(min=1),
        default=2,
        metavar="N",
        help="How often each case is played; a mistake counts if it is made each time.",
    ),
    click.option("--url", metavar="URL", help="A gateway that runs already, in place of CMD."),
    click.option(
        "--upstream-port",
        type=click.IntRange(0, 65535),
        default=0,
        metavar="N",
        help="Where the upstream listens. Default: a free port.",
    ),
    file_key(
        "--unsupported",
        multiple=True,
        metavar="PATTERN=REASON",
        help="Cases that the gateway does not promise to support.",
    ),
    file_key(
        "--prices",
        metavar="KEY=VALUE...",
        help="The gateway's prices for a million tokens, such as 'input=2.5 output=10': the costs "
        "that it states are judged by them.",
    ),
    click.option("--all", "every", is_flag=True, help="Play all cases of the kit."),
)
"""The options for the gateway, and for its cases."""


@click.command(cls=ProgramCommand)
@together(*reversed((*_CHOOSING, *_ATTACHING)))
@collect("reporting", _reporting, *reversed(_REPORTING))
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[PATH...] -- CMD...")
@click.pass_context
def check(context: click.Context, /, **options: Any) -> None:
    """Check a client in any language, and write what it gets wrong to a results file.

    CMD is a runner: a small program around the client, which reads cases on its standard input
    and writes outcomes on its standard output. `mockllm init --runner` writes one to begin with;
    `mockllm docs runner-protocol` describes the protocol.

    The exit code is 0 if all is right or as --known-failing lists it, 1 for mistakes, 2 if not
    all cases could be judged.

    \b
    Examples:
      mockllm init --runner javascript runner
      mockllm check --api chat -- node runner/runner.mjs
      mockllm check --api chat --only 'sse-crlf*' -- node runner/runner.mjs
      mockllm check --api chat --cuts -- node runner/runner.mjs
      mockllm check --api anthropic --http -- python client_runner.py
      mockllm check --api anthropic --http --faults -- python client_runner.py
      mockllm check --api chat --known-failing known.txt --update -- node runner/runner.mjs
    """
    from mockllm.cli.check.check_run import run_check
    from mockllm.cli.check.options import CheckOptions

    context.exit(run_check(CheckOptions.of(**options)))


# What follows CMD is CMD's own, with `--` before it or without.
@click.command("check-gateway", context_settings={"allow_interspersed_args": False})
@together(*reversed(_GATEWAYS))
@collect("reporting", _reporting, *reversed(_REPORTING))
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD...")
@click.pass_context
def check_gateway(context: click.Context, /, **options: Any) -> None:
    """Check a gateway, and write what it gets wrong to a results file.

    mockllm is both ends: the client in front of the gateway, which speaks --down, and the service
    behind it, which speaks --up. CMD starts the gateway; in it {port} is where it has to listen,
    and {upstream} the base URL of the service. `mockllm docs gateway` has the details.

    The exit code is 0 if all is right or as --known-failing lists it, 1 for mistakes, 2 if not
    all cases could be judged.

    \b
    Examples:
      mockllm check-gateway --down anthropic --up chat -- python my_gateway.py --port {port}
      mockllm check-gateway --down anthropic --up chat --preset litellm
      mockllm check-gateway --down chat --up chat --url http://127.0.0.1:4000 --upstream-port 9000
    """
    from mockllm.cli.check.gateway import GatewayOptions, run_gateway

    context.exit(run_gateway(GatewayOptions(**options)))
