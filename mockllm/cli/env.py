"""`mockllm env`: the variables that lead clients to a server."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

import click

from mockllm.cli.terminal.output import echo
from mockllm.core.errors import UsageError


def read_root(url: str) -> str:
    """The beginning of the base URLs of a server, from `--url`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(f"--url needs a URL such as http://127.0.0.1:8080, got {url!r}")
    return _usable(parts).rstrip("/")


def _usable(parts: SplitResult) -> str:
    """A URL that clients can use: for one that names all addresses of a machine, the one on this
    machine."""
    from mockllm.serve.server.http.addresses import reachable, url_of

    host = parts.hostname or ""
    if reachable(host) == host:
        return parts.geturl()
    try:
        port = parts.port or 80
    except ValueError as error:
        raise UsageError(f"--url: {error}") from None
    netloc = urlsplit(url_of(reachable(host), port)).netloc
    return parts._replace(netloc=netloc).geturl()


@click.command()
@click.argument("service", required=False, type=click.Choice(["azure"]))
@click.option(
    "--url",
    default="http://127.0.0.1:8080",
    help="Where the server listens; its first line names it.",
)
@click.option("--session", metavar="NAME", help="Give the base URLs of a session.")
@click.option("--export", is_flag=True, help="Put `export` before each, for a shell.")
def env(service: str | None, url: str, session: str | None, export: bool) -> None:
    """Print the environment variables that the official SDKs read, as in a .env file.

    SERVICE prints those of another service instead: `azure` of OpenAI's models on Azure. They
    stand apart, since the `openai` module cannot choose between OPENAI_API_KEY and these.

    \b
    Examples:
      mockllm env > .env
      eval "$(mockllm env --export --session mine)"
      eval "$(mockllm env azure --export)"
    """
    from mockllm.serve.server.control.control_routes import base_urls
    from mockllm.serve.server.http.request_reading import SESSION_NAME
    from mockllm.wire.protocols.environment import client_environment, environment_on_request

    root = read_root(url)
    if session is not None:
        if not re.fullmatch(SESSION_NAME, session):
            raise UsageError(
                f"--session takes 1 to 128 letters, digits, '.', '_' and '-', got {session!r}"
            )
        root = f"{root}/s/{session}"
    if service is None:
        variables = client_environment(base_urls(root))
    else:
        variables = environment_on_request(service, base_urls(root))
    variables["MOCKLLM_URL"] = root
    for name, value in variables.items():
        echo(f"{'export ' if export else ''}{name}={value}")
