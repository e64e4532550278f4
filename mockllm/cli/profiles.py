"""`mockllm profiles`: the latency of real services, and where it was measured."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from mockllm.cli.options.parameters import json_option
from mockllm.cli.terminal.output import echo


@click.command("profiles")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the latency profiles of `serve --profile`, with the source of each figure.

    \b
    Examples:
      mockllm profiles
      mockllm serve scenarios/ --profile gpt-4o
      mockllm serve scenarios/ --profile gpt-4o --latency 'ttft=lognormal(390ms, p99=2s)'
    """
    from mockllm.play.replay.latency.profiles import profiles

    listed = profiles().values()
    if as_json:
        echo(json.dumps([*map(asdict, listed)], indent=2))
        return
    for number, profile in enumerate(listed):
        echo(f"{'' if not number else chr(10)}{profile.name}: {profile.title}")
        for figure in profile.figures:
            echo(f"  {figure.key}={figure.value}: {figure.measured}")
        echo(f"  {profile.source} ({profile.date})")
