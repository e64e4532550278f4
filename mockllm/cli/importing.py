"""`mockllm import`: cassettes, archives, dumps and fixtures to scenarios."""

from __future__ import annotations

import gc
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mockllm.cli.options.parameters import EXISTING, match_ignore_option
from mockllm.cli.options.recording import output_option, redaction_options, redaction_rules
from mockllm.cli.terminal.output import echo
from mockllm.scenario.model import Ignored

if TYPE_CHECKING:
    from mockllm.record.importers.batch import ImportResult
    from mockllm.record.recording.drafting.matches import Condition

_COLLECTION = 100_000
"""New objects after which garbage is looked for. Exchanges have many, and nearly all stay."""


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="FILE...")
@output_option
@click.option(
    "--join",
    is_flag=True,
    help="Exchanges of different files, and of DIR, may be one conversation.",
)
@redaction_options()
@match_ignore_option()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_context
def import_(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    output: Path,
    join: bool,
    match: tuple[Condition, ...] | None,
    ignore: Ignored,
    as_json: bool,
    redact: tuple[str, ...],
    auxiliary: bool,
) -> None:
    """Make scenarios of what other tools recorded.

    FILE is a VCR cassette (YAML or JSON), an HTTP archive (.har), a recording of nock or httprr,
    the output of `curl -N` with the request beside it, a fixture file of aimock, a file of
    mcp-recorder or mcp-vcr, or a folder of such files, compressed (.gz) or not. A line for each
    exchange says what it became. Secrets are taken out before anything is written. At the end each
    request is sent to the folder again; a line reports it if its recording does not answer. The
    exit code is 0 if something was imported and all of it is found again, 1 if nothing was
    imported, 2 if something is not found again or cannot be written.

    \b
    Examples:
      mockllm import tests/cassettes -o scenarios/recorded
      mockllm import traffic.har -o scenarios/recorded --redact 'acct_[0-9]+'
      mockllm import answer.sse -o scenarios/recorded --json
      mockllm import monday.har tuesday.har -o scenarios/recorded --join
    """
    from mockllm.cli.terminal.progress import progress_line
    from mockllm.record.importers.batch import import_files, summary, totals
    from mockllm.record.importers.file_formats import not_read
    from mockllm.record.recording.drafting.matches import match_rule
    from mockllm.record.recording.store.folder import Folder
    from mockllm.record.redaction.redact import Redactor

    gc.set_threshold(_COLLECTION)
    rules = redaction_rules(redact)
    rule = match_rule(match, ignore, auxiliary=auxiliary)
    folder, redactor = Folder(output), Redactor(rules)
    others: list[Path] = []
    with progress_line() as progress:
        results = import_files(
            paths,
            folder,
            redactor=redactor,
            match=rule,
            join=join,
            progress=progress,
            other=others.append,
        )
    if as_json:
        # Names of files and paths of URLs may have secrets too.
        shown = redactor.json(_as_json(results, others))
        echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        lines = [*map(str, results), *([not_read(others)] if others else []), summary(results)]
        echo(redactor.text("\n".join(lines)))
    sums = totals(results)
    if sums["scenarios"] and not as_json:
        echo(f"next: mockllm serve {shlex.quote(str(output))}")
    unwritten = any(result.line.lost for result in results)
    missing = sums["not_found"] or unwritten
    context.exit(1 if sums["skipped"] == sums["exchanges"] else 2 if missing else 0)


def _as_json(results: list[ImportResult], others: list[Path]) -> dict[str, Any]:
    exchanges = [
        {
            "source": result.line.source,
            "asked": result.request,
            "outcome": result.line.outcome,
            "scenario": result.line.scenario or None,
            "turn": result.line.turn,
            "words": result.details,
            "not_found": result.line.not_found,
        }
        for result in results
    ]
    from mockllm.record.importers.batch import totals

    not_read = {"not_read": list(map(str, others))} if others else {}
    return {"exchanges": exchanges, **not_read, "totals": totals(results)}
