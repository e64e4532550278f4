"""The folder of recordings: what is written, and what is left after an interruption."""

import contextlib
import dataclasses
import os
import threading

import pytest

from mockllm.core.http import NO_TARGET
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.compilation.tape_player import is_unedited
from mockllm.play.replay.loading import load
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.store import locks as locking
from mockllm.record.recording.store.folder import Folder
from mockllm.scenario.model import Match
from mockllm.scenario.part_model import visible_text
from mockllm.wire.protocols import PROTOCOLS
from tests.record.recording.exchanging import answer, calling, failure, model, result, timed, user

HELLO = [user("hello")]
MORE = [*HELLO, model("hi"), user("more")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recorded"


def texts(scenario):
    return [visible_text(turn.reply) for turn in scenario.turns]


def all_texts(path):
    return {scenario.name: texts(scenario) for scenario in load([path])}


def files(path):
    return sorted(file.name for file in path.iterdir() if not file.name.startswith("."))


def write(folder, *exchanges, **options):
    """Drafts and writes exchanges one after the other, as a recorder does; the lines about them."""
    drafting = Drafting(known=folder.scenarios(), tape=folder.tape, **options)
    lines = []
    for exchange in exchanges:
        for draft in drafting.add(exchange):
            written = folder.write(draft)
            drafting.adopt_changes(draft, written)
            lines += written.report
    return lines


def test_a_scenario_and_its_tapes(path):
    """A scenario is a YAML file and a tape for each turn; loading gives what was drafted."""
    write(Folder(path), answer(HELLO, "hi"), answer(MORE, "yes"))
    assert files(path) == ["hello.1.jsonl", "hello.2.jsonl", "hello.yaml"]
    (scenario,) = load([path])
    assert texts(scenario) == ["hi", "yes"]
    for index, turn in enumerate(scenario.turns):
        assert is_unedited(scenario, index, Folder(path).tape(turn.recorded))


def test_an_empty_folder_has_no_scenarios(path):
    """A missing folder is created empty."""
    assert Folder(path).scenarios() == ()
    assert path.is_dir()


def test_a_second_recorder_continues(path):
    """Another run continues a conversation in the same file."""
    write(Folder(path), answer(HELLO, "hi"))
    write(Folder(path), answer(MORE, "yes"))
    assert all_texts(path) == {"hello": ["hi", "yes"]}


def test_two_recorders_at_once(path):
    """Two recorders on one folder overwrite nothing of each other, and the folder can be loaded."""
    one, two = Folder(path), Folder(path)
    first, second = Drafting(), Drafting()
    for drafting, folder, text in ((first, one, "A"), (second, two, "B")):
        for draft in drafting.add(answer(HELLO, text)):
            drafting.adopt_changes(draft, folder.write(draft))
    for drafting, folder, text in ((first, one, "A"), (second, two, "B")):
        messages = [*HELLO, model(text), user(f"more {text}")]
        for draft in drafting.add(answer(messages, f"{text} again")):
            drafting.adopt_changes(draft, folder.write(draft))
    assert sorted(all_texts(path).values()) == [["A", "A again"], ["B", "B again"]]


def test_two_recorders_that_continue_the_same(path):
    """When both continue one conversation, the later one writes a file of its own with the shared
    turns."""
    write(Folder(path), answer(HELLO, "hi"))
    one, two = Folder(path), Folder(path)
    draftings = [Drafting(known=folder.scenarios(), tape=folder.tape) for folder in (one, two)]
    for drafting, folder, text in zip(draftings, (one, two), ("A", "B"), strict=True):
        messages = [*HELLO, model("hi"), user(text)]
        for draft in drafting.add(answer(messages, text)):
            drafting.adopt_changes(draft, folder.write(draft))
    assert all_texts(path) == {"hello": ["hi", "A"], "hello-2": ["hi", "B"]}


def test_many_recorders_in_threads(path):
    """All recordings of concurrent recorders are there and can be loaded."""

    def record(number):
        folder = Folder(path)
        write(folder, *[answer([user("hello")], f"{number}-{n}") for n in range(5)])

    threads = [threading.Thread(target=record, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    recorded = sorted(text for one in all_texts(path).values() for text in one)
    assert recorded == sorted(f"{number}-{n}" for number in range(4) for n in range(5))


def test_an_edited_scenario_is_not_overwritten(path):
    """A file that was edited since stays; the conversation continues in another file."""
    folder = Folder(path)
    drafting = Drafting()
    for draft in drafting.add(answer(HELLO, "hi")):
        drafting.adopt_changes(draft, folder.write(draft))
    file = path / "hello.yaml"
    file.write_text(file.read_text().replace("description: Recorded", "description: Edited"))
    for draft in drafting.add(answer(MORE, "yes")):
        drafting.adopt_changes(draft, folder.write(draft))
    assert "Edited" in file.read_text()
    assert all_texts(path) == {"hello": ["hi"], "hello-2": ["hi", "yes"]}


def test_a_deleted_scenario_is_written_again(path):
    """The conversation goes on in a new file, whole, where a person has deleted its file."""
    write(Folder(path), answer(HELLO, "hi"))
    folder = Folder(path)
    drafting = Drafting(known=folder.scenarios(), tape=folder.tape)
    (path / "hello.yaml").unlink()
    for draft in drafting.add(answer(MORE, "yes")):
        drafting.adopt_changes(draft, folder.write(draft))
    assert all_texts(path) == {"hello": ["hi", "yes"]}


def test_comments_stay(path):
    """Comments that were added to a recording are there after the next turn."""
    write(Folder(path), answer(HELLO, "hi"))
    file = path / "hello.yaml"
    file.write_text("# Mine.\n" + file.read_text() + "# The end.\n")
    write(Folder(path), answer(MORE, "yes"))
    assert file.read_text().startswith("# Mine.\n")
    assert "# The end.\n" in file.read_text()
    assert all_texts(path) == {"hello": ["hi", "yes"]}


def test_a_conversation_with_other_ids_goes_on(path):
    """The file is whole after each turn where a client gives calls ids of its own."""
    called = [*HELLO, model(None, ("other", "look", "{}")), result("other", "x")]
    asked = [*called, model("yes"), user("and now?")]
    write(Folder(path), calling(HELLO, "call_1"), answer(called, "yes"), answer(asked, "no"))
    assert all_texts(path) == {"hello": ["", "yes", "no"]}


def test_existing_files_are_not_overwritten(path):
    """A file that is no recording and has the same name is not touched."""
    folder = Folder(path)
    (path / "hello.yaml").write_text("scenario: other\nturns: [{reply: {text: mine}}]\n")
    (path / "hello-2.1.jsonl").write_text("mine")
    write(folder, answer(HELLO, "hi"))
    assert all_texts(path) == {"other": ["mine"], "hello-2": ["hi"]}
    assert (path / "hello-2.1.jsonl").read_text() == "mine"
    assert (path / "hello-2.1-2.jsonl").exists()


def test_the_tape_of_an_earlier_try_is_kept(path):
    """When an answer follows an error, the error is an attempt with its own tape."""
    write(Folder(path), failure(HELLO), answer(HELLO, "hi"))
    assert files(path) == ["hello.1-2.jsonl", "hello.1.jsonl", "hello.yaml"]
    (turn,) = load([path])[0].turns
    assert [recording.file for recording in turn.recordings()] == [
        "hello.1.jsonl",
        "hello.1-2.jsonl",
    ]
    assert [attempt.recorded.request for attempt in turn.attempts] == [""]


def test_an_earlier_try_with_fields_of_its_service_is_exact(path):
    """The error before an answer is played byte by byte, also with fields that only its service
    has."""
    body = b'{"error":  {"message": "Slow down", "code": 429, "metadata": {"provider": "P"}}}'
    failed = dataclasses.replace(failure(HELLO), chunks=timed([body]))
    write(Folder(path), failed, answer(HELLO, "hi"))
    player, session = Player(load([path])), Session("default")
    assert player.served.scenarios[0].turns[0].attempts[0].extra
    played = []
    for _ in range(2):
        call = ApiCall(PROTOCOLS["chat"], NO_TARGET, {}, failed.request_body, session)
        answered = player.play(call)
        played.append((answered.answer, answered.played.recorded))
    (tried, how), (_, then) = played
    assert (how, then) == ("exact", "exact")
    assert (tried.status, b"".join(tried.data)) == (429, body)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(12))
def test_killed_at_any_step(path, monkeypatch, at):
    """Whichever step is the last, earlier recordings are there, the folder can be loaded, and
    another recorder can continue."""

    class KilledError(BaseException):
        pass

    folder = Folder(path)
    write(folder, answer(HELLO, "hi"))
    left = at
    original = {name: getattr(os, name) for name in ("fsync", "open", "close")}

    def dying(name):
        def step(*arguments, **options):
            nonlocal left
            left -= 1
            # The system closes the files of a killed process.
            done = original[name](*arguments, **options) if left >= 0 or name == "close" else None
            if left < 0:
                raise KilledError
            return done

        return step

    with monkeypatch.context() as patch:
        for name in original:
            patch.setattr(locking.os, name, dying(name))
        with contextlib.suppress(KilledError):
            write(folder, answer(MORE, "yes"))
    found = all_texts(path)
    assert found in ({"hello": ["hi"]}, {"hello": ["hi", "yes"]})
    write(Folder(path), answer([user("else")], "fine"))
    assert all_texts(path) == {**found, "else": ["fine"]}
    assert not list(path.glob("*.unfinished"))


def test_a_conversation_that_is_too_long_is_refused(path, monkeypatch):
    """A file that could not be loaded again is not written; shorter answers go on in it."""
    monkeypatch.setattr("mockllm.record.recording.store.folder.MAX_FILE", 800)
    folder = Folder(path)
    write(folder, answer(HELLO, "hi"))
    line, shorter = write(folder, answer(MORE, "x" * 1000), answer(MORE, "yes"))
    assert (line.outcome, line.lost, shorter.outcome) == ("skipped", True, "neutral")
    assert "too long" in line.description
    assert all_texts(path) == {"hello": ["hi", "yes"]}


def test_a_file_of_several_scenarios_is_not_rewritten(path):
    """A conversation that continues one scenario of several in a file is written to a file of its
    own."""
    write(Folder(path), answer(HELLO, "hi"))
    file = path / "hello.yaml"
    file.write_text(file.read_text() + "---\nscenario: beside\nturns: [{reply: {text: mine}}]\n")
    write(Folder(path), answer(MORE, "yes"))
    assert all_texts(path) == {"hello": ["hi"], "beside": ["mine"], "hello-2": ["hi", "yes"]}


def test_what_cannot_be_loaded_is_not_written(path):
    """A draft that the loader refuses is reported, and not in the folder: one such file would keep
    all beside it from being loaded. What comes after it belongs to what is there."""
    folder = Folder(path)
    drafting = Drafting()
    outcomes = []
    for number, exchange in enumerate(
        [answer(HELLO, "hi"), answer(MORE, "yes"), answer(MORE, "a")]
    ):
        (draft,) = drafting.add(exchange)
        if number == 0:
            refused = Match(user=draft.scenario.match.user, body={"top_p": float("nan")})
            draft = dataclasses.replace(
                draft, scenario=dataclasses.replace(draft.scenario, match=refused)
            )
        written = folder.write(draft)
        drafting.adopt_changes(draft, written)
        outcomes += [(line.outcome, line.lost) for line in written.report]
        if number == 0:
            assert "it cannot be written: must be a number" in written.report[0].description
            assert files(path) == []
    assert outcomes == [("skipped", True), ("neutral", False), ("neutral", False)]
    assert sorted(all_texts(path).values()) == [["a"], ["yes"]]
