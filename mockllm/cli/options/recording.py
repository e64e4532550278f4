"""The options for recordings: services, conditions, secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

import click

from mockllm.cli.options.config import config_file, file_key
from mockllm.cli.options.parameters import Option, together
from mockllm.core.errors import UsageError

if TYPE_CHECKING:
    from mockllm.record.recording.drafting.matches import Condition
    from mockllm.record.redaction.rules import Rules
    from mockllm.scenario.model import Ignored
    from mockllm.serve.server.options import RecordMode, RecordOptions


def _groups() -> dict[str, tuple[str, ...]]:
    """The APIs that a name before a base URL means: `openai` both of OpenAI's, else one."""
    from mockllm.wire.protocols import PROTOCOLS

    groups: dict[str, tuple[str, ...]] = {}
    for name in PROTOCOLS.over_http:  # WebSockets are passed on
        group = PROTOCOLS[name].client.group
        groups[group] = (*groups.get(group, ()), name)
    return groups | {name: (name,) for name in PROTOCOLS.over_http}


def _variables() -> dict[str, tuple[str, ...]]:
    """The environment variables with base URLs, and for which APIs; later ones count more."""
    from mockllm.wire.protocols import PROTOCOLS

    groups = dict.fromkeys(protocol.client.group for protocol in PROTOCOLS.values())
    named = {f"MOCKLLM_UPSTREAM_{group.upper()}": _groups()[group] for group in groups}
    return {"MOCKLLM_UPSTREAM": PROTOCOLS.over_http, **named}


def conditions(
    context: click.Context, param: click.Parameter, value: str | None
) -> tuple[Condition, ...] | None:
    """The names of conditions, separated by commas; None where the option is absent."""
    if value is None:
        return None
    from mockllm.record.recording.drafting.matches import Condition

    known: tuple[Condition, ...] = get_args(Condition)
    names = [name for name in map(str.strip, value.split(",")) if name not in ("", "none")]
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is none of {', '.join(known)}, or none")
    return tuple(condition for name in names for condition in known if condition == name)


output_option = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of the scenarios; created where it is missing.",
)


def redact_option(option: Option = click.option) -> Callable[..., Any]:
    """Adds the option, or the key of the file, for what is secret."""
    return option(
        "--redact",
        multiple=True,
        metavar="PATTERN",
        help="A regular expression for what is secret, besides [redact] of mockllm.toml; may be "
        "repeated.",
    )


def redaction_options(option: Option = click.option) -> Callable[..., Any]:
    """Adds the options, or the keys of the file, for secrets, and for the `match` of recorded
    scenarios; and the key for what agents ask beside their conversation."""
    match = option(
        "--match",
        callback=conditions,
        metavar="NAMES",
        help="What decides when a scenario answers: of user, system, model and tools, with "
        "commas, or none; default: user.",
    )
    return together(match, redact_option(option), file_key("--auxiliary", is_flag=True))


upstream_options = together(
    click.option(
        "--upstream",
        "upstreams",
        multiple=True,
        metavar="[API=]URL",
        help="The real service, for one API (chat, anthropic, gemini, ...; openai for all of "
        "OpenAI's), for all, or of an MCP server (mcp:NAME=URL); may be repeated.",
    ),
    file_key(
        "--trust-env",
        is_flag=True,
        help="Reach the services through the proxies that the environment names.",
    ),
)
"""Adds the options for the services, and for the way to them."""


def redaction_rules(redact: Iterable[str] = ()) -> Rules:
    """The rules for secrets from `--redact` and from `mockllm.toml`, if that exists."""
    from mockllm.record.redaction.rules import rules_from

    return rules_from(config_file(), redact)


def record_options(
    folder: Path,
    mode: RecordMode,
    ignore: Ignored = (),
    *,
    intercepts: bool = False,
    upstreams: tuple[str, ...],
    trust_env: bool,
    match: tuple[Condition, ...] | None,
    redact: tuple[str, ...],
    auxiliary: bool,
) -> RecordOptions:
    """The recording options of a server.

    Args:
        ignore: what of requests differs from run to run.
        intercepts: whether requests come with the origins of their services.
    """
    from mockllm.record.recording.drafting.matches import match_rule
    from mockllm.serve.server.options import RecordOptions

    servers = mcp_servers(upstreams)
    upstream = services([one for one in upstreams if not one.startswith(_MCP)], os.environ)
    if not (upstream or servers or intercepts) and mode != "none":
        raise UsageError(
            "recording needs a service: --upstream https://api.openai.com, or "
            "--upstream anthropic=https://api.anthropic.com, or MOCKLLM_UPSTREAM_OPENAI in the "
            "environment; or --proxy, where clients ask the services themselves"
        )
    return RecordOptions(
        folder=folder,
        upstreams=upstream,
        mode=mode,
        match=match_rule(match, ignore, auxiliary=auxiliary),
        rules=redaction_rules(redact),
        trust_env=trust_env,
        apart=True,
        servers=servers,
    )


_MCP = "mcp:"


def mcp_servers(given: Iterable[str]) -> dict[str, str]:
    """The URLs of MCP servers by name, from `mcp:NAME=URL` among the services; that of a program
    is `stdio`."""
    servers: dict[str, str] = {}
    for one in given:
        if one.startswith(_MCP):
            name, _, url = one.removeprefix(_MCP).partition("=")
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
                raise UsageError(
                    f"--upstream {_MCP}NAME=URL needs a name of letters, digits, '-' and '_', got "
                    f"{name!r}"
                )
            is_program = url == "stdio"
            servers[name] = url if is_program else _base_url(url, f"--upstream {_MCP}{name}=")
    return servers


def services(
    given: Iterable[str], environment: Mapping[str, str], option: str = "--upstream"
) -> dict[str, str]:
    """The base URL of the service for each API: options count more than the environment, and
    those for one API more than those for all."""
    by_api: dict[str, str] = {}
    for variable, apis in _variables().items():
        if environment.get(variable):
            by_api |= dict.fromkeys(apis, _base_url(environment[variable], variable))
    named: dict[str, str] = {}
    groups = _groups()
    for named_url in given:
        name, equals, url = named_url.partition("=")
        if equals and name in groups:
            named |= dict.fromkeys(groups[name], _base_url(url, f"{option} {name}="))
        else:
            by_api |= dict.fromkeys(_variables()["MOCKLLM_UPSTREAM"], _base_url(named_url, option))
    return by_api | named


def _base_url(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        from mockllm.record.redaction.credentials import masked_url

        apis = ", ".join(_groups())
        raise UsageError(
            f"{where} needs a base URL such as https://api.openai.com, got {masked_url(url)!r}; "
            f"an API may stand before it: {apis}"
        )
    return url.rstrip("/")
