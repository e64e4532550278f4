"""`mockllm drift`: whether the live services still answer as they were recorded."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from mockllm.cli.options.parameters import EXISTING, read_scenarios
from mockllm.cli.options.recording import (
    redaction_rules,
    secret_options,
    services,
    upstream_options,
)
from mockllm.core.text import counted
from mockllm.errors import UsageError

if TYPE_CHECKING:
    from mockllm.drift.asking import LiveAnswer
    from mockllm.drift.destinations import Destination
    from mockllm.drift.questions import NotAsked, Question, Questions
    from mockllm.drift.report import DriftReport
    from mockllm.scenario.model import Scenario

    Asked = list[tuple[Question, Destination]]


@click.command()
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="RECORDED...")
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
    "--json",
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
@secret_options
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
    **secrets: Any,
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
      mockllm drift scenarios/recorded --sample 20 --yes --json drift.json --html drift.html
      mockllm drift scenarios/recorded --upstream chat=https://api.groq.com/openai
      mockllm drift scenarios/recorded --update
    """
    from mockllm.drift.questions import questions
    from mockllm.drift.run import recordings

    scenarios = read_scenarios(paths)
    found, unread = recordings(scenarios)
    if not found and not unread:
        raise UsageError("there are no recordings: no turn of these scenarios has a tape")
    chosen = questions(found, include, sample)
    asked, failed = _destinations(chosen, services(upstreams, os.environ), headers)
    click.echo(_announcement(asked))
    if asked and not yes:
        _confirm()
    answers = _ask(asked, trust_env=trust_env)
    report, drifted = _compared(chosen, answers, (*failed, *unread))
    if update and drifted:
        report = _updated(report, drifted, scenarios, secrets)
    _write(report, json_file, html_file)
    from mockllm.drift.report import EXIT_CODES, report_text

    click.echo(report_text(report))
    context.exit(EXIT_CODES[report.verdict])


def _destinations(
    chosen: Questions, upstreams: dict[str, str], headers: Sequence[str]
) -> tuple[Asked, list[NotAsked]]:
    """Where each request goes, and those that can go nowhere."""
    from mockllm.drift.destinations import Destinations
    from mockllm.drift.questions import NotAsked

    pairs = [header.partition("=") for header in headers]
    if not all(name and variable for name, _, variable in pairs):
        raise UsageError("--header takes NAME=VARIABLE, such as api-key=AZURE_OPENAI_API_KEY")
    if headers and not upstreams:
        raise UsageError("--header is for the service that --upstream names; name it, too")
    named = {name.strip().lower(): variable.strip() for name, _, variable in pairs}
    places = Destinations(upstreams, os.environ, named)
    asked, failed = [], []
    for question in chosen.asked:
        place = places.of(question.recording.tape.exchange)
        if isinstance(place, str):
            failed.append(NotAsked(question.recording.name, place))
        else:
            asked.append((question, place))
    return asked, failed


def _announcement(asked: Asked) -> str:
    hosts = Counter(urlsplit(place.url).netloc for _, place in asked)
    if not hosts:
        return "no request is sent"
    where = ", ".join(f"{count} to {host}" for host, count in hosts.items())
    sent = sum(question.input for question, _ in asked)
    got = sum(question.output for question, _ in asked)
    number = counted(len(asked), "request")
    return f"{number} ({where}); about {sent:,} tokens in and {got:,} out"


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked whether to send them; --yes sends them")
    click.confirm("Send them?", abort=True)


def _ask(asked: Asked, *, trust_env: bool) -> list[LiveAnswer]:
    from mockllm.cli.terminal.progress import progress_line
    from mockllm.drift.asking import ask

    count = 0
    with progress_line() as progress:

        def answered(_: LiveAnswer) -> None:
            nonlocal count
            count += 1
            progress("answers", count, len(asked))

        return ask(asked, trust_env=trust_env, answered=answered)


def _compared(
    chosen: Questions, answers: list[LiveAnswer], failed: Sequence[NotAsked]
) -> tuple[DriftReport, list[LiveAnswer]]:
    import mockllm
    from mockllm.drift.questions import NotAsked
    from mockllm.drift.report import DriftReport
    from mockllm.drift.run import DriftRun

    run = DriftRun(chosen)
    reasons = [(answer.question.recording.name, run.add(answer)) for answer in answers]
    report = DriftReport(
        mockllm=mockllm.__version__,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        compared=run.comparison.compared,
        findings=run.comparison.findings(),
        otherwise=tuple(run.comparison.otherwise.items()),
        chance=run.comparison.chance,
        same_request=chosen.same,
        failed=(*failed, *(NotAsked(name, why) for name, why in reasons if why)),
        not_asked=chosen.not_asked,
    )
    return report, run.drifted


def _updated(
    report: DriftReport,
    drifted: list[LiveAnswer],
    scenarios: Sequence[Scenario],
    secrets: dict[str, Any],
) -> DriftReport:
    from dataclasses import replace

    from mockllm.drift.run import record_anew
    from mockllm.redaction.redact import Redactor

    redactor = Redactor(redaction_rules(**secrets))
    return replace(report, updated=tuple(record_anew(drifted, scenarios, redactor)))


def _write(report: DriftReport, json_file: Path | None, html_file: Path | None) -> None:
    from mockllm.conformance.results.file import write_report
    from mockllm.drift.report import report_json

    if json_file is not None:
        text = json.dumps(report_json(report), indent=2, ensure_ascii=False)
        write_report(json_file, text + "\n")
    if html_file is not None:
        from mockllm.conformance.site.drift import drift_page

        write_report(html_file, drift_page(report))
