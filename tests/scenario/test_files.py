"""Folders are searched recursively, and nothing outside them is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import load


def write(path: Path, name: str | None = None) -> Path:
    """A file with one scenario, which has the name of the file by default."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"scenario: {name or path.stem}\nturns:\n  - reply: {{text: hi}}\n")
    return path


def problems(*paths: Path | str, below: Path) -> list[str]:
    """The problems, with paths relative to a folder."""
    with pytest.raises(ScenarioError) as caught:
        load(paths)
    return [str(problem).replace(f"{below}{os.sep}", "") for problem in caught.value.problems]


def test_folders_are_searched(tmp_path: Path) -> None:
    """Both file name endings count, at any depth, in order; hidden and other files do not."""
    for name in ("b.yaml", "a.yml", "sub/c.yaml", "sub/deeper/d.yml"):
        write(tmp_path / name)
    for name in (".hidden.yaml", ".git/x.yaml", "notes.txt", "e.yaml.bak", "sub/.f.yml"):
        write(tmp_path / name, "twice")
    assert [scenario.name for scenario in load([tmp_path])] == ["a", "b", "c", "d"]


def test_paths_keep_their_order(tmp_path: Path) -> None:
    """Scenarios have the order of the paths; a file that is named directly may have any name."""
    paths = [write(tmp_path / "z.yaml"), write(tmp_path / "a.txt")]
    assert [scenario.name for scenario in load(map(str, paths))] == ["z", "a"]


def test_no_file_is_read_twice(tmp_path: Path) -> None:
    """A file that several paths lead to is loaded once."""
    path = write(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").symlink_to(path)
    (tmp_path / "c.yaml").hardlink_to(path)
    assert len(load([tmp_path, path, str(tmp_path / "b.yaml")])) == 1


def test_several_documents_are_several_scenarios(tmp_path: Path) -> None:
    """A file may hold several scenarios, with a byte order mark and CRLF too."""
    one = write(tmp_path / "a.yaml").read_text()
    text = "\ufeff" + one + "---\n" + one.replace(": a", ": b")
    (tmp_path / "a.yaml").write_bytes(text.replace("\n", "\r\n").encode())
    assert [scenario.name for scenario in load([tmp_path])] == ["a", "b"]


def test_links_out_of_the_folder_are_problems(tmp_path: Path) -> None:
    """Links to files and folders elsewhere are reported, not followed."""
    write(tmp_path / "elsewhere" / "x.yaml")
    inside = tmp_path / "inside"
    write(inside / "a.yaml")
    (inside / "b.yaml").symlink_to("../elsewhere/x.yaml")
    (inside / "c").symlink_to("../elsewhere")
    (inside / "up").symlink_to("..")
    (inside / "loop").symlink_to(".")
    (inside / "d.txt").symlink_to("../elsewhere/x.yaml")
    message = ":1:1: is a link that leaves the folder; give its target as a path instead"
    assert problems(inside, below=inside) == [f"{name}{message}" for name in ("b.yaml", "c", "up")]


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    """Links to hidden files of the folder itself are followed, as mounted configuration has
    them."""
    write(tmp_path / "..data" / "a.yaml")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    assert [scenario.name for scenario in load([tmp_path])] == ["a"]


def test_unreadable_files_are_problems(tmp_path: Path) -> None:
    """Missing paths, empty folders and special files are problems; the others are still read."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.yaml").symlink_to("gone.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "bad.yaml").write_text("scenario: 5\nturns: [{reply: {text: hi}}]\n")
    assert problems(tmp_path, tmp_path / "missing.yaml", tmp_path / "empty", below=tmp_path) == [
        "bad.yaml:1:11: scenario: must be a string, got 5; put it in quotes to make it one",
        "broken.yaml:1:1: cannot be read: No such file or directory",
        "empty:1:1: holds no scenario file, *.yaml or *.yml",
        "missing.yaml:1:1: cannot be read: No such file or directory",
        "pipe.yaml:1:1: is not a regular file",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"scenario: a\ntext: caf\xe9\n", "2:10: must be UTF-8, got byte 0xe9"),
        ("scenario: é\n".encode("utf-16"), "1:1: must be UTF-8, got byte 0xff"),
        ("# ü\n# üx".encode() + b"\x80\n", "2:5: must be UTF-8, got byte 0x80"),
        (b"", "1:1: holds no scenario; one begins with 'scenario: NAME' and has 'turns'"),
    ],
)
def test_bytes_must_be_utf8(content: bytes, problem: str, tmp_path: Path) -> None:
    """Another encoding is a problem at its first invalid byte."""
    (tmp_path / "a.yaml").write_bytes(content)
    assert problems(tmp_path, below=tmp_path) == [f"a.yaml:{problem}"]


def test_conflicts_between_files_name_both(tmp_path: Path) -> None:
    """A name or a match that two files share is a problem with both locations."""
    for name in ("a.yaml", "b.yaml"):
        text = "scenario: same\nmatch: any\nturns: [{reply: {text: hi}}]\n"
        (tmp_path / name).write_text(text)
    assert problems(tmp_path, below=tmp_path) == [
        "b.yaml:1:11: scenario: 'same' is the name of another scenario, at a.yaml:1:11",
        "b.yaml:2:8: match: matches the same requests as scenario 'same', at a.yaml:2:8; "
        "add a condition to one of them, or a 'priority'",
    ]


def test_the_problems_of_all_files_are_reported(tmp_path: Path) -> None:
    """One broken file does not hide the problems of the next."""
    (tmp_path / "a.yaml").write_text("turns: [\n")
    (tmp_path / "b.yaml").write_text("turns: 5\n")
    assert [problem.split(":")[0] for problem in problems(tmp_path, below=tmp_path)] == [
        "a.yaml",
        "b.yaml",
        "b.yaml",
    ]


def test_a_tape_of_a_variant_is_looked_for(tmp_path: Path) -> None:
    """Not only those of the turn itself: one that is missing is found when the file is loaded."""
    file = tmp_path / "a.yaml"
    file.write_text(
        "scenario: a\nturns:\n- reply: {text: hi}\n"
        "  when: {api: chat, attempts: [{recorded: gone.jsonl}]}\n"
    )
    with pytest.raises(ScenarioError, match=r"4:\d+: turns\[0\].*recorded: 'gone.jsonl' cannot be"):
        load([file])
