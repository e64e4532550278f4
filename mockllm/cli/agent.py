"""`mockllm agent`: a coding agent, led to a server that runs already."""

from __future__ import annotations

import os

import click

from mockllm.cli.env import read_root
from mockllm.cli.options.parameters import AGENT_NAMES, check_agent_name, timeout_option
from mockllm.cli.serving.child import LedCommand, run_led


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--url",
    envvar="MOCKLLM_URL",
    show_envvar=True,
    default="http://127.0.0.1:8080",
    help="Where the server listens; or the URL of a session.",
)
@timeout_option("2m")
@click.argument("name", metavar=AGENT_NAMES, callback=check_agent_name)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROMPT...")
@click.pass_context
def agent(
    context: click.Context, /, url: str, timeout: int, name: str, words: tuple[str, ...]
) -> None:
    """Run a coding agent against a server that runs already, such as that of `mockllm serve`.

    It gets a HOME and settings of its own, which lead it to the server. It asks for no permission,
    reads no standard input, and is ended after --timeout. After its name come the prompt, and
    options of its own. The exit code is that of the agent.

    \b
    Examples:
      mockllm agent claude "write hello.txt"
      mockllm agent --url http://127.0.0.1:8080/s/mine codex -- --json "write hello.txt"
    """
    from mockllm.serve.server.control.control_routes import base_urls
    from mockllm.wire.protocols.environment import client_environment, proxy_exemptions

    root = read_root(url)
    led = {**client_environment(base_urls(root)), **proxy_exemptions(os.environ)}
    arguments = words[1:] if words[0] == "--" else words
    program = LedCommand(arguments, name, timeout / 1e6)
    context.exit(run_led(program, {**led, "MOCKLLM_URL": root}))
