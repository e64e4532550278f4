"""Builds the site of the documentation into build/docs: `make docs`.

The pages are those of docs/, and some of the root (README is not among them: its content is that
of `index.md`). Links to other files lead to the source or, as long as it has no address, become
plain text. A dead link or anchor is an error. The tables of clients are added, with a page for each
client, case and quirk, and so are the JSON Schemas.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mockllm.cli import main as mockllm
from mockllm.core import documentation

ROOT = Path(__file__).parents[1]
FROM_ROOT = {
    f"{name.upper()}.md": f"{name}.md" for name in ("changelog", "contributing", "security")
}
"""Pages that stand outside of docs/, and their names in the site."""

_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")

_MARKED_BLOCK = re.compile(r"^( *```\w+) .*$", re.MULTILINE)

_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
_MORE = dict.fromkeys(
    ("clients.md", "resilience-clients.md"),
    "\n[Every client, case and quirk](results/index.html) has a page.\n",
)
"""What a page has in the site only: links to what is made there."""


def main() -> int:
    """Builds the site."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "docs")
    site = parser.parse_args().output.resolve()
    shutil.rmtree(site, ignore_errors=True)
    with TemporaryDirectory() as folder:
        code = _build(Path(folder), site)
    if not code:
        print(site / "index.html")
    return code


def _build(work: Path, site: Path) -> int:
    source = work / "source"
    shutil.copytree(ROOT / "docs", source)
    for name, page in FROM_ROOT.items():
        shutil.copyfile(ROOT / name, source / page)
    for file in source.rglob("*.md"):
        original = _original(file.relative_to(source))
        text = linked(file.read_text(encoding="utf-8"), original)
        # What tests read behind the language of a block, such as `yaml fragment`, hides it here.
        text = _MARKED_BLOCK.sub(r"\1", text)
        is_searched = original.name != "CHANGELOG.md" and "maintainers" not in original.parts
        text = ("" if is_searched else _NOT_SEARCHED) + text + _MORE.get(file.name, "")
        file.write_text(text, encoding="utf-8")
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    if documentation.SITE:
        site_url = f'[project]\nsite_url = "{documentation.SITE}/"'
        settings = settings.replace("[project]", site_url, 1)
    (work / "zensical.toml").write_text(settings, encoding="utf-8")
    build = [ROOT / ".venv-site/bin/zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=work, check=False)
    if done.returncode:
        return done.returncode
    site.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(work / "site", site)
    _add_clients(site)
    for schema in ("scenario/schema.json", "conformance/runner.schema.json"):
        name = schema.replace("/schema", ".schema").rpartition("/")[2]
        shutil.copyfile(ROOT / "mockllm" / schema, site / name)
    return 0


def _original(page: Path) -> Path:
    """The file of the checkout that a page of the site is made of, from the root."""
    names = {page: name for name, page in FROM_ROOT.items()}
    return Path(names.get(str(page), f"docs/{page}"))


def linked(text: str, file: Path) -> str:
    """The text of a page, with links that lead somewhere in the site.

    Args:
        file: the page in the checkout, from the root.
    """

    def in_site(link: re.Match[str]) -> str:
        image, label, target = link.groups()
        path, hash_, anchor = target.partition("#")
        if not path:
            return link[0]
        wanted = Path(os.path.normpath(file.parent / path)).as_posix()
        inner = FROM_ROOT.get(wanted) or ("index.md" if wanted == "README.md" else "")
        if wanted.startswith("docs/"):
            inner = wanted.removeprefix("docs/")
        if inner:
            below = file.parent.relative_to("docs") if file.parent.name else Path()
            return f"{image}[{label}]({os.path.relpath(inner, below)}{hash_}{anchor})"
        if documentation.REPOSITORY and not image:
            return f"[{label}]({documentation.REPOSITORY}/blob/main/{wanted}{hash_}{anchor})"
        return label

    return _LINK.sub(in_site, text)


def _add_clients(site: Path) -> None:
    """The published tables, at `results/`: an address for each client, case and quirk."""
    results = [ROOT / "measurements/results", ROOT / "measurements/results/faults"]
    words = ["report", *map(str, results), "-o", str(site / "results")]
    mockllm.main(words, standalone_mode=False)


if __name__ == "__main__":
    sys.exit(main())
