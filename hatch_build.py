"""What is made while the package is built: metadata with the addresses of the project, and the
pages of the documentation in the wheel.

The addresses stand in `mockllm/core/documentation.py`. With them the package has links to site and
source, and the links of its README lead there. Without them, links to files become plain text,
since they lead nowhere on a package index.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NOT_IN_THE_WHEEL = ("maintainers",)
"""Folders of docs/ with generated tables for maintainers."""

_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\((?!https?:|#)([^)\s]+)\)")
_WITHOUT_SITE = (
    "\nThe pages that are named here come with the package: `mockllm docs` opens them.\n"
)


def addresses(root: Path) -> tuple[str, str]:
    """The addresses of the documentation and of the source; "" for one that does not exist yet."""
    text = (root / "mockllm/core/documentation.py").read_text(encoding="utf-8")
    found = dict(re.findall(r'^(SITE|REPOSITORY) = "([^"]*)"', text, re.MULTILINE))
    return found["SITE"], found["REPOSITORY"]


def pages(root: Path) -> dict[str, str]:
    """The pages of the wheel: their files, and where they are in it."""
    docs = root / "docs"
    files = (file.relative_to(docs) for file in sorted(docs.rglob("*.md")))
    kept = (file for file in files if file.parts[0] not in NOT_IN_THE_WHEEL)
    return {str(docs / file): f"mockllm/pages/{file.as_posix()}" for file in kept}


def urls(site: str, repository: str) -> dict[str, str]:
    """The `urls` of the package."""
    return {
        **({"Homepage": site, "Documentation": site} if site else {}),
        **(
            {
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            }
            if repository
            else {}
        ),
    }


def readme_for_index(text: str, site: str, repository: str) -> str:
    """The README with links that work away from the checkout."""

    def absolute(link: re.Match[str]) -> str:
        image, label, target = link.groups()
        path, hash_, anchor = target.partition("#")
        if image:
            return f"![{label}]({repository}/raw/main/{path})" if repository else ""
        page = re.fullmatch(r"docs/(.+)\.md", path)
        if page and site:
            return f"[{label}]({site}/{page[1]}/{hash_}{anchor})"
        if repository:
            return f"[{label}]({repository}/blob/main/{target})"
        return label

    found = _LINK.sub(absolute, text)
    return found if site else found + _WITHOUT_SITE


class CustomMetadataHook(MetadataHookInterface):
    """Adds `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        site, repository = addresses(root)
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readme_for_index(text, site, repository),
        }
        if found := urls(site, repository):
            metadata["urls"] = found


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the pages to a wheel; a checkout has them in docs/."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"] |= pages(Path(self.root))
