"""Recordings of other tools that are played where they are: `--cassettes`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from mockllm.cli.options.parameters import read_scenarios
from mockllm.cli.options.recording import redaction_rules
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import Problem, ScenarioError
from mockllm.scenario.model import Ignored, Scenario

_MOST_SHOWN = 20
"""Of the lines about recordings that are not played."""


class Cassettes:
    """Recordings, imported into folders that are there while the command runs.

    Args:
        paths: of files and folders.
        ignore: what of requests differs from run to run.
    """

    def __init__(self, paths: tuple[Path, ...], ignore: Ignored) -> None:
        self.paths = paths
        self._ignore = ignore
        # Read here: `folder` is also called in threads, which know no command.
        self._rules = redaction_rules()
        work = TemporaryDirectory(prefix="mockllm-")
        self._work = Path(click.get_current_context().with_resource(work))
        self._imports = 0

    def folder(self) -> Path:
        """A folder with the scenarios of the recordings as they are now. Standard error shows what
        is not played.

        Raises:
            ScenarioError: nothing is.
        """
        from mockllm.record.importers.batch import import_files, summary, totals
        from mockllm.record.importers.file_formats import not_read
        from mockllm.record.recording.drafting.matches import match_rule
        from mockllm.record.recording.store.folder import Folder
        from mockllm.record.redaction.redact import Redactor

        self._imports += 1
        folder, redactor = Folder(self._work / str(self._imports)), Redactor(self._rules)
        match = match_rule(None, self._ignore)
        others: list[Path] = []
        results = import_files(
            self.paths, folder, redactor=redactor, match=match, other=others.append
        )
        missed = [
            str(result)
            for result in results
            if result.line.outcome == "skipped" or result.line.not_found
        ]
        lines = missed[:_MOST_SHOWN]
        if len(missed) > _MOST_SHOWN:
            lines.append(f"... and {len(missed) - _MOST_SHOWN} more; `mockllm import` shows all")
        lines += [not_read(others)] if others else []
        echo(redactor.text("\n".join([*lines, f"cassettes: {summary(results)}"])), err=True)
        if not totals(results)["scenarios"]:
            nothing = "there is no recording that can be played"
            raise ScenarioError([Problem(str(path), 1, 1, "", nothing) for path in self.paths])
        return folder.path


def cassettes_of(paths: tuple[Path, ...], ignore: Ignored) -> Cassettes | None:
    """The recordings in files and folders; None without any."""
    return Cassettes(paths, ignore) if paths else None


@dataclass(frozen=True, slots=True)
class ScenarioSources:
    """The scenarios that a server has: those of files, and of recordings of other tools."""

    paths: tuple[Path, ...]
    cassettes: Cassettes | None = None

    @property
    def watched(self) -> tuple[Path, ...]:
        """The files and folders that they are read from."""
        return self.paths + (() if self.cassettes is None else self.cassettes.paths)

    def folders(self) -> tuple[Path, ...]:
        """The files and folders with scenarios; the recordings are imported anew.

        Raises:
            ScenarioError: no recording can be played.
        """
        return self.paths + (() if self.cassettes is None else (self.cassettes.folder(),))

    def load(self) -> tuple[Scenario, ...]:
        """The scenarios as they are now; without any files, those that come with mockllm.

        Raises:
            ScenarioError: a file is wrong, or no recording can be played.
        """
        return read_scenarios(self.folders())
