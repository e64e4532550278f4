"""Compares what was measured again with what is published: `python -m measurements.changes`.

Prints as Markdown what changed in each column since the last commit, and puts the files back that
differ in nothing but their date. The exit code is 1 where something changed. A workflow opens it as
a pull request each week: a table that ages accuses people wrongly.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from measurements.entries import ROOT
from mockllm.conformance.reports.comparison import diff, diff_text
from mockllm.conformance.results import Results
from mockllm.conformance.results.file import load_results, read_results

__all__ = ["changes", "main"]

FOLDER = "measurements/results"


def changes(root: Path) -> list[str]:
    """The columns that changed since the last commit of a checkout, each as Markdown."""
    texts = []
    for name in _git(root, "diff", "--name-only", "HEAD", "--", FOLDER).decode().splitlines():
        path = root / name
        if not path.exists():
            texts.append(f"### {name}\n\nis gone")
            continue
        old, new = load_results(_git(root, "show", f"HEAD:{name}"), name), read_results(path)
        if _is_same(old, new):
            _git(root, "checkout", "--quiet", "HEAD", "--", name)
        else:
            texts.append(f"### {name}\n\n```text\n{diff_text(diff(old, new)).rstrip()}\n```")
    return texts


def _is_same(old: Results, new: Results) -> bool:
    found = diff(old, new)
    further = found.changes or found.added or found.removed or found.unknown
    return old.client == new.client and not further


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=root, check=True, stdout=subprocess.PIPE).stdout


def main() -> None:
    """Prints the changes of this checkout."""
    texts = changes(ROOT)
    print("\n\n".join(texts) or "Nothing changed.")
    sys.exit(1 if texts else 0)


if __name__ == "__main__":
    main()
