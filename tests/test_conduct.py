"""Tests replace no code of mockllm and wait for no clock, but for the exceptions here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

REPLACED = {
    "checking/reference/test_lines.py": "An event of 64 MiB is too large for a test.",
    "core/test_patterns.py": "A pattern that takes the whole time limit would take it here.",
    "play/faults/test_recorded_endings.py": "A stream counts as stalled after seconds.",
    "wire/framing/test_content_coding.py": "A body of 256 MiB is too large for a test.",
    "wire/framing/test_sse.py": "As in checking/reference/test_lines.py.",
    "tools/test_unions.py": "A release of an SDK that does not exist yet.",
    "fuzz/test_fuzz.py": "The fuzzer has to see a bug, and there is no request that raises.",
    "record/importers/test_vcr.py": "A file of 256 MiB is too large for a test.",
    "serve/interception/test_forward_proxy.py": (
        "A key lies in its folder too briefly to be seen there."
    ),
    "plugin/test_failures.py": "No request makes a player raise.",
    "record/importers/test_file_formats.py": "A file that unpacks to 256 MiB is too large.",
    "record/recording/store/test_folder.py": "The process dies at each call of the system in turn.",
    "record/recording/store/test_groups.py": (
        "It counts the calls of `fsync`, which leave no trace."
    ),
    "record/redaction/find/test_keep.py": (
        "A pattern that takes the whole time limit would take it here."
    ),
    "record/redaction/test_command_line.py": "As in find/test_keep.py.",
    "record/redaction/test_redacting_exchanges.py": "4,096 answers are too many for a test.",
    "record/redaction/test_scrubbing_files.py": "As in find/test_keep.py.",
    "scenario/test_routes.py": "A body of 64 MiB is too large for a test.",
    "serve/server/shared_state/test_bounds.py": "65,536 names are too many for a test.",
    "serve/server/sockets/test_live.py": "A connection that is open for ten minutes.",
    "serve/server/sockets/test_sockets.py": "A connection that is open for an hour.",
    "serve/server/test_hostile_requests.py": "No request makes a player raise.",
    "serve/server/test_hostile_values.py": "No request makes a handler raise.",
}
"""The files that replace something in a module of mockllm or its examples, with the reason."""

OURS = {
    "clients/test_matrix.py": "A list of the tests.",
    "wire/test_recorded_fields.py": "The file of the table, which it writes.",
    "measurements/test_entries.py": "The folder of the conformance runs.",
    "cli/test_docs_command.py": "The address of the project, which does not exist yet.",
    "docs/test_resilience_page.py": "A module of the page.",
    "plugin/test_agents.py": "The folder for temporary files.",
    "plugin/test_doors.py": "Methods of HTTP libraries, as tests of users replace them.",
    "serve/server/recording/test_recording_apart.py": "The interpreter's own path.",
}
"""The files that replace something else."""

SLEEPING = {
    "coding_agents/test_run_agent.py": "A command of an agent that hangs; the timeout ends it.",
    "conformance/clients/per_case.py": "A runner that hangs; the test kills it.",
    "conformance/clients/runner.py": "A runner that hangs, and one that is late.",
    "serve/server/recording/test_killed_recorder.py": (
        "Spreads the kills; it passes with any pause."
    ),
    "serve/server/recording/test_writer_process.py": "A process that hangs; the test kills it.",
}
"""The files that sleep, with the reason. A pause of 0, which lets other tasks run, is none."""


def test_only_named_files_replace_code() -> None:
    """The reasons are those of files that do so, and no other file does."""
    assert _files_with(r"\.setattr\(") == {*REPLACED, *OURS}


def test_only_named_files_sleep() -> None:
    """The reasons are those of files that sleep, and no other file does."""
    assert _files_with(r"\bsleep\((?!0\))") == set(SLEEPING)


def _files_with(pattern: str) -> set[str]:
    """The files with a call, also in a program that they have as text."""
    search = re.compile(pattern).search
    return {
        path.relative_to(HERE).as_posix()
        for path in HERE.rglob("*.py")
        if path != Path(__file__) and search(path.read_text(encoding="utf-8"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_says_how_many_tests_it_leaves_out(workers: str) -> None:
    """Also where workers run the tests, each of which knows all of them."""
    options = ["-q", "-n", workers, "-m", "not heavy", "tests/docs/test_findings.py"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert re.search(
        r"^[1-9]\d* tests that need heavy tool chains are left to `make test-all`$",
        done.stdout,
        re.MULTILINE,
    ), done.stdout
