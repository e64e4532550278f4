"""`mockllm drift`: whether the live services still answer as they were recorded."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from mockllm.cli.options.parameters import path_arguments, read_scenarios
from mockllm.cli.options.recording import redact_option, redaction_rules, services, upstream_options
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import RequestError, UsageError
from mockllm.core.pairs import read_pair
from mockllm.core.text import quantity

if TYPE_CHECKING:
    from mockllm.conformance.drift.destinations import Destination
    from mockllm.conformance.drift.drift_report import DriftReport
    from mockllm.conformance.drift.live import LiveAnswer
    from mockllm.conformance.drift.selection import LiveRequest, LiveRequests, RecordingNote
    from mockllm.scenario.model import Scenario

    Sent = list[tuple[LiveRequest, Destination]]


@click.command()
@path_arguments("RECORDED...")
@upstream_options
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VARIABLE",
    help="A header for the services of --upstream, in place of the key, with the value of an "
    "environment variable: api-key=AZURE_OPENAI_API_KEY; may be repeated.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="ROUTE",
    help="A route that calls no model and is sent nevertheless: 'POST /v1/embeddings', "
    "'/v1/files*'; may be repeated.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Send at most N requests, of each kind of answer in turn.",
)
@click.option("--yes", is_flag=True, help="Do not ask before requests are sent.")
@click.option("--update", is_flag=True, help="Record anew what has drifted.")
@click.option(
    "-o",
    "--output",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report as JSON.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report as a page that stands alone.",
)
@redact_option()
@click.pass_context
def drift(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    upstreams: tuple[str, ...],
    trust_env: bool,
    headers: tuple[str, ...],
    include: tuple[str, ...],
    sample: int | None,
    yes: bool,
    update: bool,
    json_file: Path | None,
    html_file: Path | None,
    redact: tuple[str, ...],
) -> None:
    """Send recorded requests to the live services again, and compare the answers.

    Shapes are compared, not words: fields that were added, removed or changed their type, types of
    events and their order, status and headers. Only requests for answers of a model are sent.
    How many, and about how many tokens they cost, is asked first. Keys come from the
    environment, as SDKs read them (OPENAI_API_KEY, ...), and go only to the service that defines
    the API, or to that of --upstream. Nothing is written without --update. The exit code is 0 if
    nothing has drifted, 1 if something has, and 2 if not all could be looked at: no key, a
    refusal, no network.

    \b
    Examples:
      mockllm drift scenarios/recorded
      mockllm drift scenarios/recorded --sample 20 --yes -o drift.json --html drift.html
      mockllm drift scenarios/recorded --upstream chat=https://api.groq.com/openai
      mockllm drift scenarios/recorded --update
    """
    from mockllm.conformance.drift.drift_run import recordings
    from mockllm.conformance.drift.selection import select

    if not paths:
        raise click.UsageError("name the recordings: files or folders with scenarios")
    scenarios = read_scenarios(paths)
    found, unread = recordings(scenarios)
    if not found and not unread:
        raise UsageError("there are no recordings: no turn of these scenarios has a tape")
    chosen = select(found, include, sample)
    sent, failed = _destinations(chosen, services(upstreams, os.environ), headers)
    echo(_announcement(sent))
    if sent and not yes:
        _confirm()
    answers = _send(sent, trust_env=trust_env)
    report, drifted = _compare(chosen, answers, (*failed, *unread))
    if update and drifted:
        report = _update(report, drifted, scenarios, redact)
    _write(report, json_file, html_file)
    from mockllm.conformance.drift.drift_report import EXIT_CODES, report_text

    echo(report_text(report))
    context.exit(EXIT_CODES[report.verdict])


def _destinations(
    chosen: LiveRequests, upstreams: dict[str, str], headers: Sequence[str]
) -> tuple[Sent, list[RecordingNote]]:
    """Where each request goes, and those that can go nowhere."""
    from mockllm.conformance.drift.destinations import Destinations
    from mockllm.conformance.drift.selection import RecordingNote

    try:
        pairs = [read_pair(header, "api-key=AZURE_OPENAI_API_KEY") for header in headers]
    except ValueError as error:
        raise UsageError(f"--header {error}") from None
    if headers and not upstreams:
        raise UsageError("--header is for the service that --upstream names; name it, too")
    named = {name.lower(): variable for name, variable in pairs}
    places = Destinations(upstreams, os.environ, named)
    sent: Sent = []
    failed: list[RecordingNote] = []
    for request in chosen.requests:
        try:
            sent.append((request, places.of(request.recording.tape.exchange)))
        except RequestError as error:
            failed.append(RecordingNote(request.recording.name, error.message))
    return sent, failed


def _announcement(sent: Sent) -> str:
    hosts = Counter(urlsplit(place.url).netloc for _, place in sent)
    if not hosts:
        return "no request is sent"
    where = ", ".join(f"{count} to {host}" for host, count in hosts.items())
    tokens_in = sum(request.input for request, _ in sent)
    tokens_out = sum(request.output for request, _ in sent)
    number = quantity(len(sent), "request")
    return f"{number} ({where}); about {tokens_in:,} tokens in and {tokens_out:,} out"


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked whether to send them; --yes sends them")
    click.confirm("Send them?", abort=True)


def _send(sent: Sent, *, trust_env: bool) -> list[LiveAnswer]:
    from mockllm.cli.terminal.progress import progress_line
    from mockllm.conformance.drift.live import send_all

    count = 0
    with progress_line() as progress:

        def count_answer(_: LiveAnswer) -> None:
            nonlocal count
            count += 1
            progress("answers", count, len(sent))

        return asyncio.run(send_all(sent, trust_env=trust_env, answered=count_answer))


def _compare(
    chosen: LiveRequests, answers: list[LiveAnswer], failed: Sequence[RecordingNote]
) -> tuple[DriftReport, list[LiveAnswer]]:
    import mockllm
    from mockllm.conformance.drift.drift_report import DriftReport
    from mockllm.conformance.drift.drift_run import DriftRun
    from mockllm.conformance.drift.selection import RecordingNote

    run = DriftRun(chosen)
    reasons = [(answer.request.recording.name, run.add(answer)) for answer in answers]
    otherwise = run.comparison.otherwise.items()
    report = DriftReport(
        mockllm=mockllm.__version__,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        compared=run.comparison.compared,
        findings=run.comparison.findings(),
        otherwise=tuple(RecordingNote(name, how) for name, how in otherwise),
        chance=run.comparison.chance,
        same_request=chosen.same,
        failed=(*failed, *(RecordingNote(name, why) for name, why in reasons if why)),
        left_out=chosen.left_out,
    )
    return report, run.drifted


def _update(
    report: DriftReport,
    drifted: list[LiveAnswer],
    scenarios: Sequence[Scenario],
    redact: tuple[str, ...],
) -> DriftReport:
    from dataclasses import replace

    from mockllm.conformance.drift.drift_run import record_anew
    from mockllm.record.redaction.redact import Redactor

    redactor = Redactor(redaction_rules(redact))
    return replace(report, updated=tuple(record_anew(drifted, scenarios, redactor)))


def _write(report: DriftReport, json_file: Path | None, html_file: Path | None) -> None:
    from mockllm.conformance.drift.drift_report import report_json
    from mockllm.conformance.results.file import write_report

    if json_file is not None:
        text = json.dumps(report_json(report), indent=2, ensure_ascii=False)
        write_report(json_file, text + "\n")
    if html_file is not None:
        from mockllm.conformance.site.drift import drift_page

        write_report(html_file, drift_page(report))
