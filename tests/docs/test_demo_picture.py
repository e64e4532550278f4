"""The picture of `mockllm demo` in the README shows the command's output."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from click.testing import CliRunner

from mockllm.cli import main
from tools.demo_picture import PICTURE, picture

SVG = "{http://www.w3.org/2000/svg}"
MARKS = re.compile(r" [✓]|[\d.]+ s\b")


def last_frame() -> list[str]:
    """The lines of the picture where animations are not played."""
    lines: dict[float, list[str]] = {}
    for group in ET.parse(PICTURE).getroot().iter(f"{SVG}g"):
        if group.get("opacity") != "0":
            for text in group.iter(f"{SVG}text"):
                lines.setdefault(float(text.attrib["y"]), []).append(text.text or "")
    return [" ".join(lines[y]) for y in sorted(lines)]


def test_the_committed_picture_is_up_to_date():
    """`python -m tools.demo_picture` changes nothing; it always writes the same bytes."""
    assert picture() == PICTURE.read_text(encoding="utf-8"), "run: python -m tools.demo_picture"
    assert picture() == picture()


def test_the_picture_shows_the_output_of_the_command():
    """Each line of the last frame is in the output, apart from times and marks."""
    printed = CliRunner().invoke(main, ["demo", "--speed", "0"]).output
    output = " ".join(MARKS.sub("", printed).split())
    prompt, head, *lines = last_frame()
    assert prompt == "$ mockllm demo"
    assert head.rpartition(":")[0] in output
    assert any("Anthropic" in line for line in lines)
    for line in lines:
        if not line.startswith("["):
            assert " ".join(MARKS.sub("", line).split()) in output


def test_the_picture_suits_a_page():
    """It is narrow enough, loads nothing and runs nothing."""
    root = ET.parse(PICTURE).getroot()
    assert int(root.attrib["width"]) <= 900
    text = PICTURE.read_text(encoding="utf-8")
    assert not re.search(r"<script|<image|href|url\(|@import", text)
