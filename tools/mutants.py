"""Mutation testing: do the quick tests of a wing notice when a line of its code is changed?

`python -m tools.mutants` draws some modules of each wing and of the pytest plugin, lets mutmut make
every small change ("mutant") of them, draws a sample of these, and runs for each mutant the quick
tests of its wing that reach the changed function. It prints the changes that were not noticed, and
by wing how many were ("killed"), and exits with 1 if fewer than the demanded share were. The same
seed draws the same mutants from the same code. A wing that has used its share of the time leaves
the rest of its sample, which is counted. It works in a copy of the checkout, which it removes.

mutmut must be installed where this runs, and mockllm must not: `make mutants` makes such an
environment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

WINGS = (
    "core", "scenario", "wire", "play", "record", "checking", "serve", "conformance", "cli",
    "plugin",
)  # fmt: skip
_CHECKOUT = Path(__file__).parent.parent

_PYTEST = ["-m", "not slow", "--hypothesis-profile=fast", "--ignore=tests/clients"]
# The order of the tests is mutmut's, and `mutants_pytest` prepares each one.
_PYTEST += ["-p", "no:randomly", "-p", "tools.mutants_pytest"]
_GENERATE = """
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants
copy_src_dir()
copy_also_copy_files()
create_mutants(2)
"""
"""What `mutmut run` does first; its command has no way to only generate the mutants."""

_PLUGIN = "mockllm_pytest"
_OUTCOMES = {0: "survived", 33: "not reached", 5: "not reached", 1: "killed", 3: "killed"}
_TIMEOUTS = (24, -24, 36, 152, 255)
"""mutmut's exit codes (`mutmut.stats.status_by_exit_code`)."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one mutant.

    Args:
        name: mutmut's: module, function and number.
        outcome: `killed`, `timed out`, `survived`, `not reached` by any test, `not run` in time, or
            mutmut's exit code where it is another.
    """

    name: str
    outcome: str

    @property
    def wing(self) -> str:
        """The wing of the module that was changed."""
        package, wing, *_ = self.name.split(".")
        return wing if package == "mockllm" else "plugin"

    @property
    def noticed(self) -> bool:
        """Whether a test failed, or did not end any more."""
        return self.outcome in ("killed", "timed out")


def draw(names: Iterable[str], count: int, seed: str) -> list[str]:
    """A sample, the same for the same names and seed."""
    every = sorted(names)
    return sorted(random.Random(seed).sample(every, min(count, len(every))))


def report(results: Sequence[Result]) -> str:
    """The figures as text: by wing, then of all together."""
    kinds = ("killed", "timed out", "survived", "not reached", "not run")
    lines = [f"{'wing':12}" + "".join(f"{kind:>12}" for kind in kinds)]
    for wing in WINGS:
        counts = Counter(result.outcome for result in results if result.wing == wing)
        if counts:
            lines.append(f"{wing:12}" + "".join(f"{counts[kind] or '':>12}" for kind in kinds))
            lines += [
                f"  {counts[kind]} with {kind}" for kind in sorted(counts.keys() - set(kinds))
            ]
    noticed, run = _counts(results)
    lines.append(f"{noticed} of {run} mutants killed ({noticed / max(run, 1):.1%})")
    return "\n".join(lines)


def _counts(results: Iterable[Result]) -> tuple[int, int]:
    """How many mutants were noticed, and how many were run."""
    run = [result for result in results if result.outcome != "not run"]
    return sum(result.noticed for result in run), len(run)


def _copy(folder: Path, modules: Sequence[str], tests: str) -> None:
    """Copies the checkout without what git ignores, and adds mutmut's settings.

    Args:
        modules: the files to change, below the copy.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=_CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (_CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(_CHECKOUT / name, folder / name)
    # mutmut takes the path of a module for its name.
    (folder / "pytest_plugin" / _PLUGIN).rename(folder / _PLUGIN)
    packages = ["mockllm", _PLUGIN]
    settings = {
        "source_paths": packages,
        "only_mutate": modules,
        "also_copy": sorted(path.name for path in folder.iterdir() if path.name not in packages),
        "pytest_add_cli_args": _PYTEST,
        "pytest_add_cli_args_test_selection": [tests],
        "track_dependencies": False,
        "use_git_change_detection": False,
        # A loop without end is ended by `mutants_pytest`; this is for a slow machine.
        "timeout_constant": 60.0,
    }
    with (folder / "pyproject.toml").open("a") as file:
        file.write("\n[tool.mutmut]\n")
        file.writelines(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())


def _environment(folder: Path) -> dict[str, str]:
    """The variables of mutmut's processes."""
    # Processes that tests start find the code as it is; only tests in the same process see mutants.
    # In CI hypothesis draws the same examples each time.
    return {**os.environ, "PYTHONPATH": str(folder), "CI": "true"}


def _outcomes(folder: Path) -> dict[str, int | None]:
    """The exit code of each mutant; None for those that were not run."""
    found: dict[str, int | None] = {}
    for file in sorted((folder / "mutants").rglob("*.meta")):
        found |= json.loads(file.read_text())["exit_code_by_key"]
    return found


def _outcome(code: int | None) -> str:
    if code is None:
        return "not run"
    return "timed out" if code in _TIMEOUTS else _OUTCOMES.get(code, f"exit code {code}")


def _python(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _output(folder: Path, *arguments: str, seconds: float | None = None) -> str:
    """What a command prints; one that takes longer is ended, with all that it started.

    Raises:
        SystemExit: the command failed; its output is printed.
    """
    with _python(folder, *arguments) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)[:80]} failed:\n{output[-4000:]}")
    return output


def _results(wing: str, options: argparse.Namespace, until: float) -> list[Result]:
    """The outcomes of a sample of the mutants of a wing; prints those that were not noticed."""
    top = f"pytest_plugin/{_PLUGIN}" if wing == "plugin" else f"mockllm/{wing}"
    paths = (path for path in (_CHECKOUT / top).rglob("*.py"))
    files = [
        path.relative_to(_CHECKOUT).as_posix().removeprefix("pytest_plugin/") for path in paths
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        _copy(folder, draw(files, options.modules, f"{options.seed} {wing}"), f"tests/{wing}")
        _output(folder, "-c", _GENERATE)
        names = draw(_outcomes(folder), options.count, f"{options.seed} {wing}")
        command = ["-m", "mutmut", "run", "--max-children", str(options.children), *names]
        _output(folder, *command, seconds=max(until - time.monotonic(), 1))
        outcomes = _outcomes(folder)
        results = [Result(one, _outcome(outcomes[one])) for one in names]
        for result in results:
            if not result.noticed and result.outcome != "not run":
                print(
                    f"{result.name}: {result.outcome}\n{_change(folder, result.name)}", flush=True
                )
    return results


def _change(folder: Path, name: str) -> str:
    """The lines that a mutant changes."""
    shown = _output(folder, "-m", "mutmut", "show", name).splitlines()
    return "\n".join(
        f"    {line}" for line in shown if line[:1] in "+-" and line[:3] not in ("+++", "---")
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 if too few mutants were killed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--wing", action="append", choices=WINGS, help="only this one; repeat")
    parser.add_argument("--count", type=int, default=30, help="of mutants in a wing (default: 30)")
    parser.add_argument("--modules", type=int, default=10, help="in a wing (default: 10)")
    parser.add_argument("--minutes", type=float, default=20.0, help="for all wings (default: 20)")
    parser.add_argument("--seed", default="1", help="of the sample (default: 1)")
    parser.add_argument("--least", type=float, default=55.0, help="per cent (default: 55)")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 2, help="processes")
    options = parser.parse_args(arguments)
    wings = options.wing or WINGS
    began, share = time.monotonic(), options.minutes * 60 / len(wings)
    results: list[Result] = []
    for number, wing in enumerate(wings, 1):
        results += _results(wing, options, began + number * share)
    print(report(results))
    noticed, run = _counts(results)
    return int(noticed < options.least / 100 * run)


if __name__ == "__main__":
    sys.exit(main())
