"""Reads the Dockerfile and .dockerignore."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tests.deployment.command_lines import ROOT


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile: keyword and the rest, continued lines joined."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    text = re.sub(r"\s*\\\n\s*", " ", text)
    return [
        (keyword, rest.strip())
        for keyword, _, rest in (line.partition(" ") for line in text.splitlines() if line)
    ]


def argv(keyword: str) -> list[str]:
    """The list of an instruction in the exec form, such as CMD ["serve"]."""
    (text,) = (rest for instruction, rest in instructions() if instruction == keyword)
    words: list[str] = json.loads(text[text.index("[") :])
    return words


def copy_context(target: Path) -> None:
    """Copies what the build's COPY instructions take from the context, which .dockerignore has to
    let in."""
    allowed = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    for keyword, rest in instructions():
        if keyword != "COPY" or rest.startswith("--from"):
            continue
        *sources, place = rest.split()
        for source in sources:
            assert source in allowed, f"{source} is copied, and .dockerignore leaves it out"
            if place.startswith("/"):
                continue
            destination = target / (place if len(sources) == 1 else Path(place) / source)
            if (ROOT / source).is_file():
                shutil.copy(ROOT / source, destination)
            else:
                ignore = shutil.ignore_patterns("__pycache__", "node_modules", "target")
                shutil.copytree(ROOT / source, destination, ignore=ignore)
