"""What is written together: all or nothing, beside other recorders, under names for any system."""

import os
import sys
import threading
from pathlib import Path

import pytest

from mockllm.play.replay.loading import load
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.store import locks as locking
from mockllm.record.recording.store.folder import Folder
from mockllm.record.recording.store.locks import put, put_all
from tests.record.recording.exchanging import answer, model, user
from tests.record.recording.store.test_folder import HELLO, MORE, all_texts, files


def add(folder, drafting, *exchanges):
    for exchange in exchanges:
        for draft in drafting.add(exchange):
            drafting.adopt_changes(draft, folder.write(draft))


def test_a_group_gives_the_same_files(tmp_path):
    """Exchanges that are written together, also turns of one conversation, give the files that they
    give one by one."""
    exchanges = [answer(HELLO, "hi"), answer([user("else")], "fine"), answer(MORE, "yes")]
    for name, together in (("single", False), ("group", True)):
        folder, drafting = Folder(tmp_path / name), Drafting()
        if together:
            with folder.group():
                add(folder, drafting, *exchanges)
        else:
            add(folder, drafting, *exchanges)
    single, group = tmp_path / "single", tmp_path / "group"
    assert files(single) == files(group)
    for file in files(single):
        assert (single / file).read_bytes() == (group / file).read_bytes()
    assert all_texts(group) == {"hello": ["hi", "yes"], "else": ["fine"]}


def test_nothing_is_there_before_the_end_of_a_group(tmp_path):
    """Files appear at the end of the group, and an exception in it leaves nothing."""
    folder, drafting = Folder(tmp_path), Drafting()

    def interrupted():
        with folder.group():
            add(folder, drafting, answer(HELLO, "hi"))
            assert files(tmp_path) == []
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert files(tmp_path) == []
    add(folder, Drafting(), answer(HELLO, "hi"))
    assert all_texts(tmp_path) == {"hello": ["hi"]}


def test_a_group_that_cannot_be_written_leaves_nothing(tmp_path):
    """If one file of a group cannot be written, none is there. The next group can be written."""
    folder, drafting = Folder(tmp_path), Drafting()
    obstacle = tmp_path / ".else.yaml.unfinished"

    def refused():
        with folder.group():
            add(folder, drafting, answer(HELLO, "hi"), answer([user("else")], "fine"))
            obstacle.mkdir()

    with pytest.raises(IsADirectoryError):
        refused()
    obstacle.rmdir()
    assert files(tmp_path) == []
    add(folder, Drafting(), answer(HELLO, "hi"))
    assert all_texts(tmp_path) == {"hello": ["hi"]}


def test_the_yaml_comes_after_its_tape(tmp_path, monkeypatch):
    """At any moment each scenario in the folder has its tapes."""
    seen = []
    fsync = os.fsync

    def looking(handle):
        # Loading is an error if a tape is missing.
        seen.append(all_texts(tmp_path) if list(tmp_path.glob("*.yaml")) else {})
        fsync(handle)

    monkeypatch.setattr(locking.os, "fsync", looking)
    folder, drafting = Folder(tmp_path), Drafting()
    with folder.group():
        add(folder, drafting, answer(HELLO, "hi"), answer([user("else")], "fine"))
    assert seen[0] == {}
    assert seen[-1] == {"hello": ["hi"], "else": ["fine"]}


def test_a_later_group_of_files_needs_the_earlier(tmp_path):
    """If a file of the first group cannot be put in its place, none of the second is there."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").touch()
    with pytest.raises(OSError, match="a"):
        put_all(tmp_path, {"a": b"1"}, {"c": b"2"})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such limit")
def test_many_files_need_few_descriptors(tmp_path):
    """A long answer of many files is written by a process that may open few."""
    import resource

    contents = {f"{number}": b"%d" % number for number in range(400)}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(file.name) for file in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 100, hard))
    try:
        put_all(tmp_path, contents)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == contents


def test_recorders_take_turns_within_a_tick_of_the_clock(tmp_path):
    """What another recorder has written since is noticed, however soon: no name is given twice."""
    folders = [Folder(tmp_path) for _ in range(3)]
    draftings = [Drafting() for _ in folders]

    def record(number):
        for turn in range(20):
            with folders[number].group():
                add(folders[number], draftings[number], answer(HELLO, f"{number}-{turn}"))

    threads = [threading.Thread(target=record, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sorted(text for one in all_texts(tmp_path).values() for text in one)
    assert found == sorted(f"{number}-{turn}" for number in range(3) for turn in range(20))


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("con", "_con"),
        ("NUL", "_nul"),
        ("com1", "_com1"),
        ("aux", "_aux"),
        ("x" * 400, "x" * 48),
    ],
)
def test_names_that_some_system_refuses(tmp_path, name, stem):
    """No file has a name that Windows reserves or that is too long, whatever the first message is;
    the scenario keeps its name."""
    add(Folder(tmp_path), Drafting(), answer([user(name)], "hi"))
    assert files(tmp_path) == [f"{stem}.1.jsonl", f"{stem}.yaml"]
    (scenario,) = load([tmp_path])
    assert scenario.name == stem.removeprefix("_")


def test_names_that_differ_only_in_case(tmp_path):
    """Files never differ only in case, as one would overwrite the other on some systems."""
    (tmp_path / "Hello.yaml").write_text("scenario: other\nturns: [{reply: {text: mine}}]\n")
    folder, drafting = Folder(tmp_path), Drafting()
    with folder.group():
        add(folder, drafting, answer(HELLO, "hi"), answer([user("HELLO")], "loud"))
    found = [file for file in files(tmp_path) if file.endswith(".yaml")]
    assert len({file.lower() for file in found}) == len(found) == 3
    assert sorted(all_texts(tmp_path).values()) == [["hi"], ["loud"], ["mine"]]


def test_a_conversation_goes_on_in_the_next_group(tmp_path):
    """The next turn is added to the file of the group before, unless a person has edited it."""
    folder, drafting = Folder(tmp_path), Drafting()
    with folder.group():
        add(folder, drafting, answer(HELLO, "hi"))
    with folder.group():
        add(folder, drafting, answer(MORE, "yes"))
    assert all_texts(tmp_path) == {"hello": ["hi", "yes"]}
    file = tmp_path / "hello.yaml"
    file.write_text(file.read_text().replace("Recorded", "Edited"))  # in place, with no new name
    with folder.group():
        add(folder, drafting, answer([*MORE, model("yes"), user("again")], "no"))
    assert "Edited" in file.read_text()
    assert all_texts(tmp_path) == {"hello": ["hi", "yes"], "hello-2": ["hi", "yes", "no"]}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_has_the_permissions_that_it_is_given(tmp_path):
    """Whatever the process allows otherwise; a file that nobody else may read stays so."""
    before = os.umask(0)
    try:
        put(tmp_path / "secret.yaml", b"a: 1\n", 0o600)
        put(tmp_path / "other.yaml", b"a: 1\n")
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {"secret.yaml": 0o600, "other.yaml": 0o666}
