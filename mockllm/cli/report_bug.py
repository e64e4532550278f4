"""`mockllm report-bug`: what a report of a bug needs, as Markdown."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import click

from mockllm.cli.options.parameters import API, path_arguments, read_scenarios
from mockllm.cli.show import is_case, scenario_named, scenario_names, show
from mockllm.cli.terminal.installation import findings, installed_version
from mockllm.cli.terminal.output import echo
from mockllm.core import documentation
from mockllm.scenario.dump import dump
from mockllm.wire.protocols import PROTOCOLS

_OURS = ("aiohttp", "click", "jsonschema", "pyyaml", "regex", "uvloop", "pytest")
_CLIENTS = (
    *("openai", "google-genai", "boto3", "ag-ui-protocol", "langchain-openai", "pydantic-ai-slim"),
    *("litellm", "httpx", *PROTOCOLS),  # some SDKs have the name of their API
)


@click.command("report-bug")
@click.argument("name", required=False, metavar="[NAME]", shell_complete=scenario_names)
@path_arguments("[PATH]...")
@click.option("--api", type=API, help="Default: the first that the scenario plays.")
@click.option("--turn", type=click.IntRange(min=1), default=1)
@click.pass_context
def report_bug(
    context: click.Context, name: str | None, paths: tuple[Path, ...], api: str | None, turn: int
) -> None:
    """Print what a report of a bug needs: versions and, with NAME, a scenario and its bytes.

    NAME is a scenario, or a case of `mockllm check`. The output is Markdown. Nothing is sent; look
    for secrets in it before you do.

    \b
    Examples:
      mockllm report-bug
      mockllm report-bug weather --scenarios scenarios/ --api chat
      mockllm report-bug chat/sample-call+chat-index-missing
    """
    scenario = None
    if name is not None and not is_case(name):
        scenario = scenario_named(name, read_scenarios(paths))
    for line in _versions():
        echo(line)
    if scenario is not None:
        echo(f"\n### The scenario\n\n```yaml\n{dump(scenario).rstrip()}\n```")
    if name is not None:
        echo(f"\n### The bytes of `{name}`, turn {turn}\n\n```text")
        context.invoke(show, scenario=name, paths=paths, api=api, turn=turn)
        echo("```")
    where = f" at {documentation.REPOSITORY}/issues/new/choose" if documentation.REPOSITORY else ""
    echo(f"mockllm: add what you expected, and report it{where}", err=True)


def _versions() -> Iterator[str]:
    installed = {found.name.lower(): found.version for found in distributions()}
    yield "### Versions\n"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield f"- mockllm {installed_version()}, {python}, {platform.platform()}"
    for what, names in (("with", _OURS), ("clients", _CLIENTS)):
        known = [f"{name} {installed[name]}" for name in names if name in installed]
        yield f"- {what}: {', '.join(known) or 'none'}"
    for problem in findings():
        yield f"- installation: {problem}"
