"""Mutation testing: do the fast tests notice when a line of the code is changed?

`python -m tools.mutants` lets mutmut make every small change ("mutant") of the rooms below, draws a
sample of them, runs for each mutant the fast tests that reach the changed function, and prints how
many were noticed ("killed"), and the changes that were not. It exits with 1 if fewer than the
demanded share were killed. It works in a copy of the checkout, which is removed at the end.

mutmut must be installed where this runs, and mockllm must not: `make mutants` makes such an
environment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOMS = ("core", "play/matching", "play/replay", "record/redaction")
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

_OUTCOMES = {0: "survived", 33: "not reached", 5: "not reached", 1: "killed", 3: "killed"}
_TIMEOUTS = (24, -24, 36, 152, 255)
"""mutmut's exit codes (`mutmut.stats.status_by_exit_code`)."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one mutant.

    Args:
        name: mutmut's: module, function and number.
        outcome: `killed`, `timed out`, `survived`, `not reached` by any test, or mutmut's exit code
            where it is another.
    """

    name: str
    outcome: str

    @property
    def module(self) -> str:
        """The module that was changed, without `mockllm`."""
        return self.name.rpartition(".")[0].removeprefix("mockllm.")

    @property
    def noticed(self) -> bool:
        """Whether a test failed, or did not end any more."""
        return self.outcome in ("killed", "timed out")


def draw(names: Iterable[str], count: int, seed: str) -> list[str]:
    """A sample of mutants, the same for the same code and seed."""
    every = sorted(names)
    return sorted(random.Random(seed).sample(every, min(count, len(every))))


def report(results: Sequence[Result], total: int) -> str:
    """The figures as text: by module, then of all together.

    Args:
        total: how many mutants there are from which the sample was drawn.
    """
    kinds = ("killed", "timed out", "survived", "not reached")
    lines = [f"{'module':28}" + "".join(f"{kind:>12}" for kind in kinds)]
    by_module: dict[str, Counter[str]] = {}
    for result in results:
        by_module.setdefault(result.module, Counter())[result.outcome] += 1
    for module, counts in sorted(by_module.items()):
        lines.append(f"{module:28}" + "".join(f"{counts[kind] or '':>12}" for kind in kinds))
        lines += [f"  {counts[kind]} with {kind}" for kind in sorted(counts.keys() - set(kinds))]
    noticed = sum(result.noticed for result in results)
    lines.append(
        f"{noticed} of {len(results)} mutants killed ({noticed / len(results):.1%}), drawn from "
        f"{total:,}"
    )
    return "\n".join(lines)


def _copy(folder: Path) -> None:
    """Copies the checkout without what git ignores, and adds mutmut's settings."""
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
    beside = sorted(path.name for path in folder.iterdir() if path.name != "mockllm")
    settings = {
        "source_paths": ["mockllm"],
        "only_mutate": [f"mockllm/{room}/*" for room in ROOMS],
        "also_copy": beside,
        "pytest_add_cli_args": _PYTEST,
        "pytest_add_cli_args_test_selection": ["tests"],
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
    paths = os.pathsep.join(map(str, (folder, folder / "pytest_plugin")))
    # In CI hypothesis draws the same examples each time.
    return {**os.environ, "PYTHONPATH": paths, "CI": "true"}


def _outcomes(folder: Path) -> dict[str, int | None]:
    """The exit code of each mutant; None for those that were not run."""
    found: dict[str, int | None] = {}
    for file in sorted((folder / "mutants" / "mockllm").rglob("*.meta")):
        found |= json.loads(file.read_text())["exit_code_by_key"]
    return found


def _outcome(code: int | None) -> str:
    if code in _TIMEOUTS:
        return "timed out"
    return _OUTCOMES.get(-1 if code is None else code, f"exit code {code}")


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _run(folder: Path, names: Sequence[str], children: int) -> list[Result]:
    """The outcomes of some mutants.

    Raises:
        SystemExit: mutmut failed; its output is printed.
    """
    command = ["-m", "mutmut", "run", "--max-children", str(children), *names]
    done = _python(folder, *command)
    outcomes: Mapping[str, int | None] = _outcomes(folder)
    if done.returncode or any(outcomes[name] is None for name in names):
        raise SystemExit(f"mutmut failed ({done.returncode}):\n{done.stdout[-4000:]}")
    return [Result(name, _outcome(outcomes[name])) for name in names]


def _change(folder: Path, name: str) -> str:
    """The lines that a mutant changes."""
    shown = _python(folder, "-m", "mutmut", "show", name).stdout.splitlines()
    return "\n".join(
        f"    {line}" for line in shown if line[:1] in "+-" and line[:3] not in ("+++", "---")
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 if too few mutants were killed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=300, help="of mutants (default: 300)")
    parser.add_argument("--seed", default="1", help="of the sample (default: 1)")
    parser.add_argument("--least", type=float, default=90.0, help="per cent (default: 90)")
    parser.add_argument("--room", choices=ROOMS, help="only mutants of this room")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 2, help="processes")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        _copy(folder)
        made = _python(folder, "-c", _GENERATE)
        if made.returncode:
            raise SystemExit(f"mutmut failed to make mutants:\n{made.stdout[-4000:]}")
        prefix = f"mockllm.{options.room}." if options.room else "mockllm."
        every = [outcome for outcome in _outcomes(folder) if outcome.startswith(prefix)]
        results = _run(folder, draw(every, options.count, options.seed), options.children)
        for result in results:
            if not result.noticed:
                print(f"{result.name}: {result.outcome}\n{_change(folder, result.name)}")
    print(report(results, len(every)))
    return int(sum(result.noticed for result in results) < options.least / 100 * len(results))


if __name__ == "__main__":
    sys.exit(main())
