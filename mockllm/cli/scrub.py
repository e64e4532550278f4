"""`mockllm scrub`: finds secrets in files, and takes them out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

import click

from mockllm.cli.options.parameters import EXISTING
from mockllm.cli.options.recording import redact_option, redaction_rules
from mockllm.cli.terminal.output import echo
from mockllm.core.text import quantity

_SUFFIXES = frozenset((".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".har", ".sse", ".txt"))


@click.command()
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option("--check", is_flag=True, help="Only report; exit code 1 if there is any.")
@redact_option()
@click.pass_context
def scrub(
    context: click.Context, /, paths: tuple[Path, ...], check: bool, redact: tuple[str, ...]
) -> None:
    """Take secrets out of scenarios, their tapes and other text files.

    `mockllm docs secrets` lists what is secret; `[redact]` in mockllm.toml and the options add
    to it. Folders are searched to the bottom for YAML, JSON, HAR and text files, and for what
    scenarios name: tapes, long texts, the bodies of routes. What is hidden is passed over. Files
    are rewritten whole or not at all. The secrets themselves are not printed. Of a file that is no
    text, such as a picture, only the text in it is searched, and a line reports it. The exit code
    is 0, with --check 1 if there is any secret, and 1 in either case if a file could not be
    searched.

    \b
    Examples:
      mockllm scrub scenarios/ --check
      mockllm scrub scenarios/recorded --redact 'cust_[0-9]+'
    """
    from mockllm.record.redaction.redact import Redactor
    from mockllm.record.redaction.scrub import is_binary
    from mockllm.record.redaction.scrub import scrub as scrubbed

    rules = redaction_rules(redact)
    files = _read(paths)
    for name, data in files.items():
        if is_binary(data):
            echo(f"{name}: is no text; only the text in it is searched")
    changed = scrubbed(files, Redactor(rules))
    for scrubbed_file in changed:
        for finding in scrubbed_file.findings:
            echo(str(finding))
        if scrubbed_file.content is not None and not check:
            rewrite(Path(scrubbed_file.file), scrubbed_file.content)
    count = sum(
        not finding.stays or check
        for scrubbed_file in changed
        for finding in scrubbed_file.findings
    )
    echo(_summary(count, len(files), check=check))
    unread = any(scrubbed_file.content is None for scrubbed_file in changed)
    context.exit(1 if unread or (check and count) else 0)


def _summary(count: int, files: int, *, check: bool) -> str:
    where = quantity(files, "file")
    if not count:
        return f"no secrets in {where}"
    return f"{quantity(count, 'secret')} {'found' if check else 'replaced'} in {where}"


def _read(paths: tuple[Path, ...]) -> dict[str, bytes]:
    """The contents of the files, and of those that the scenarios among them name."""
    from mockllm.record.redaction.scrub import YAML, files_named_in

    files = {str(path): path.read_bytes() for path in files_below(paths, _SUFFIXES)}
    for name in [name for name in files if name.endswith(YAML)]:
        folder = Path(name).parent
        for named in files_named_in(files[name].decode("utf-8", "surrogateescape")):
            file = folder / named
            is_below = file.is_file() and file.resolve().is_relative_to(folder.resolve())
            if is_below and str(file) not in files:
                files[str(file)] = file.read_bytes()
    return files


def files_below(
    paths: Iterable[Path], suffixes: Collection[str], left_out: Collection[str] = ()
) -> list[Path]:
    """The files among some paths, and those below folders that are not hidden, each once.

    Args:
        suffixes: of the files in folders.
        left_out: the names of folders that are not searched.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            files[path] = None
        for parent, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name[0] != "." and name not in left_out)
            below = (Path(parent, name) for name in sorted(names) if name[0] != ".")
            files |= dict.fromkeys(
                file for file in below if file.suffix in suffixes and not file.is_symlink()
            )
    return list(files)


def rewrite(file: Path, content: bytes) -> None:
    """Writes a file so that it is there whole, old or new, with the mode that it had."""
    from mockllm.record.recording.store.locks import put

    put(file, content, file.stat().st_mode & 0o7777)
