"""`mockllm export`: a scenario as what other tools read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mockllm.cli.options.parameters import API, EXISTING, read_scenarios
from mockllm.cli.show import scenario_named, scenario_names

if TYPE_CHECKING:
    from mockllm.scenario.model import Api


@click.command()
@click.argument("scenario", shell_complete=scenario_names)
@click.option(
    "--scenarios",
    "paths",
    multiple=True,
    type=EXISTING,
    metavar="PATH",
    help="Where to look; default: the scenarios that come with mockllm.",
)
@click.option("--to", "kind", type=click.Choice(["vcr"]), required=True, help="What to write.")
@click.option(
    "--api",
    type=API,
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
    from mockllm.importers.export import cassette, exchanges

    text = cassette(exchanges(scenario_named(scenario, read_scenarios(paths)), api)).encode()
    if output is not None:
        output.write_bytes(text)
        return
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
