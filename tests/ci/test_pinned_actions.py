"""Actions of others are named by commit: a tag can be moved to code that reads a job's tokens."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from tests.tracked_files import ROOT, tracked_modes

_USES = re.compile(r"""^[ \t]*(?:-[ \t]+)?(?:[{][ \t]*)?["']?uses["']?:[ \t]+(.*)$""", re.MULTILINE)
_PINNED = re.compile(r"([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+(?:\.\d+)+)")
_IMAGE = re.compile(r"docker://\S+@sha256:[0-9a-f]{64}")


def steps_of(text: str) -> list[str]:
    """The values of `uses`, with their comments, in a workflow, an action or a page."""
    return [found[1].strip() for found in _USES.finditer(text)]


def is_pinned(step: str) -> bool:
    """Whether the code of a step cannot change: a path, a commit with its version, or a digest."""
    return (
        step.startswith("./")
        or _PINNED.fullmatch(step) is not None
        or _IMAGE.fullmatch(step) is not None
    )


def _all_steps() -> list[tuple[str, str]]:
    paths = [path for path in tracked_modes() if path.endswith((".yml", ".yaml", ".md"))]
    texts = {path: (ROOT / path).read_text(encoding="utf-8", errors="replace") for path in paths}
    return [(path, step) for path, text in texts.items() for step in steps_of(text)]


def test_all_actions_are_named_by_commit() -> None:
    """Of workflows, of the action, and of the examples that users copy from the pages."""
    steps = _all_steps()
    assert {".github/workflows/release.yml", "action.yml", "docs/ci.md"} <= {p for p, _ in steps}
    assert not [(path, step) for path, step in steps if not is_pinned(step)]


def test_an_action_has_one_commit() -> None:
    """An update changes all places, and a commit has one version."""
    commits: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for _, step in _all_steps():
        if pinned := _PINNED.fullmatch(step):
            commits[pinned[1]].add((pinned[2], pinned[3]))
    assert not {name: found for name, found in commits.items() if len(found) > 1}


@pytest.mark.parametrize(
    "line",
    [
        "- uses: actions/checkout@v4",
        "  uses: pypa/gh-action-pypi-publish@release/v1",
        "- uses: actions/checkout@main # v4.4.0",
        f"- uses: actions/checkout@{'a' * 40}",
        f"- uses: actions/checkout@{'a' * 7} # v4.4.0",
        f"- {{uses: actions/checkout@{'a' * 40}}}",
        "- 'uses': actions/checkout@v4",
        "uses: owner/repository/.github/workflows/build.yml@v1",
        "- uses: docker://alpine:3",
    ],
)
def test_an_action_by_a_moving_name_is_refused(line: str) -> None:
    """A tag, a branch, a short commit, and a commit whose version nobody can read."""
    (step,) = steps_of(line)
    assert not is_pinned(step)
