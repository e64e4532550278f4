"""What is written to a folder of recordings, and what becomes of it when something goes wrong."""

import contextlib
import fcntl
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mockllm.errors import ScenarioError
from mockllm.recording.drafting.conversations import text_of
from mockllm.recording.drafting.drafts import Drafting
from mockllm.recording.store import locks as locking
from mockllm.recording.store.folder import Folder
from mockllm.recording.store.pending import Pending
from mockllm.replay.loading import load
from mockllm.tapes.model import digest
from tests.recording.exchanging import answer, failure, model, user

HELLO = [user("hello")]
MORE = [*HELLO, model("hi"), user("more")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recorded"


def texts(scenario):
    return [text_of(turn.reply) for turn in scenario.turns]


def all_texts(path):
    return {one.name: texts(one) for one in load([path])}


def files(path):
    return sorted(file.name for file in path.iterdir() if not file.name.startswith("."))


def write(folder, *exchanges, **options):
    """Writes what exchanges make, one after the other, as a recorder does."""
    drafting = Drafting(known=folder.scenarios(), tape=folder.tape, **options)
    for exchange in exchanges:
        for draft in drafting.add(exchange):
            drafting.written(draft, folder.write(draft))


def test_a_scenario_and_its_tapes(path):
    """A YAML file and a tape for each turn; what is loaded is what was drafted."""
    write(Folder(path), answer(HELLO, "hi"), answer(MORE, "yes"))
    assert files(path) == ["hello.1.jsonl", "hello.2.jsonl", "hello.yaml"]
    (scenario,) = load([path])
    assert texts(scenario) == ["hi", "yes"]
    for turn in scenario.turns:
        kept = Folder(path).tape(turn.recorded)
        assert kept.digest == digest(turn, "chat")


def test_an_empty_folder_has_no_scenarios(path):
    """A folder that is not there yet is made, and holds nothing."""
    assert Folder(path).scenarios() == ()
    assert path.is_dir()


def test_a_second_recorder_goes_on(path):
    """Another run continues what it finds, in the same file."""
    write(Folder(path), answer(HELLO, "hi"))
    write(Folder(path), answer(MORE, "yes"))
    assert all_texts(path) == {"hello": ["hi", "yes"]}


def test_two_recorders_at_once(path):
    """Two recorders that know nothing of each other overwrite nothing, and what they leave can
    be loaded."""
    one, two = Folder(path), Folder(path)
    first, second = Drafting(), Drafting()
    for drafting, folder, said in ((first, one, "A"), (second, two, "B")):
        for draft in drafting.add(answer(HELLO, said)):
            drafting.written(draft, folder.write(draft))
    for drafting, folder, said in ((first, one, "A"), (second, two, "B")):
        messages = [*HELLO, model(said), user(f"more {said}")]
        for draft in drafting.add(answer(messages, f"{said} again")):
            drafting.written(draft, folder.write(draft))
    assert sorted(all_texts(path).values()) == [["A", "A again"], ["B", "B again"]]


def test_two_recorders_that_continue_the_same(path):
    """Of two that continue one conversation, the later writes its own, with the shared turns."""
    write(Folder(path), answer(HELLO, "hi"))
    one, two = Folder(path), Folder(path)
    draftings = [Drafting(known=folder.scenarios(), tape=folder.tape) for folder in (one, two)]
    for drafting, folder, said in zip(draftings, (one, two), ("A", "B"), strict=True):
        messages = [*HELLO, model("hi"), user(said)]
        for draft in drafting.add(answer(messages, said)):
            drafting.written(draft, folder.write(draft))
    assert all_texts(path) == {"hello": ["hi", "A"], "hello-2": ["hi", "B"]}


def test_many_recorders_in_threads(path):
    """However their writes fall, everything is there and can be loaded."""

    def record(number):
        folder = Folder(path)
        write(folder, *[answer([user("hello")], f"{number}-{n}") for n in range(5)])

    threads = [threading.Thread(target=record, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = sorted(text for one in all_texts(path).values() for text in one)
    assert said == sorted(f"{number}-{n}" for number in range(4) for n in range(5))


def test_an_edited_scenario_is_not_overwritten(path):
    """What a person has changed since stays; the conversation goes on in another file."""
    folder = Folder(path)
    drafting = Drafting()
    for draft in drafting.add(answer(HELLO, "hi")):
        drafting.written(draft, folder.write(draft))
    file = path / "hello.yaml"
    file.write_text(file.read_text().replace("description: Recorded", "description: Edited"))
    for draft in drafting.add(answer(MORE, "yes")):
        drafting.written(draft, folder.write(draft))
    assert "Edited" in file.read_text()
    assert all_texts(path) == {"hello": ["hi"], "hello-2": ["hi", "yes"]}


def test_comments_stay(path):
    """What a person has written beside a recording is there after the next turn, too."""
    write(Folder(path), answer(HELLO, "hi"))
    file = path / "hello.yaml"
    file.write_text("# Mine.\n" + file.read_text() + "# The end.\n")
    write(Folder(path), answer(MORE, "yes"))
    assert file.read_text().startswith("# Mine.\n")
    assert "# The end.\n" in file.read_text()
    assert all_texts(path) == {"hello": ["hi", "yes"]}


def test_names_of_files_that_are_there(path):
    """A file of the name that has nothing to do with the recording is not touched."""
    folder = Folder(path)
    (path / "hello.yaml").write_text("scenario: other\nturns: [{reply: {text: mine}}]\n")
    (path / "hello-2.1.jsonl").write_text("mine")
    write(folder, answer(HELLO, "hi"))
    assert all_texts(path) == {"other": ["mine"], "hello-2": ["hi"]}
    assert (path / "hello-2.1.jsonl").read_text() == "mine"
    assert (path / "hello-2.1-2.jsonl").exists()


def test_tapes_that_nobody_has_any_more_go(path):
    """When a retry takes the place of an error, so does its tape; the old one stays until the
    YAML no longer names it."""
    write(Folder(path), failure(HELLO), answer(HELLO, "hi"))
    assert files(path) == ["hello.1-2.jsonl", "hello.yaml"]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(12))
def test_killed_at_any_step(path, monkeypatch, at):
    """Wherever writing stops, what was there is there, nothing is broken, and another recorder
    goes on."""

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
            # The system closes what a killed process had open.
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
    """No file is written that could not be loaded again."""
    monkeypatch.setattr("mockllm.recording.store.folder.MAX_FILE", 800)
    folder = Folder(path)
    write(folder, answer(HELLO, "hi"))
    with pytest.raises(ScenarioError, match="too long"):
        write(folder, answer(MORE, "x" * 1000))
    assert all_texts(path) == {"hello": ["hi"]}


# What is put aside


def bodies(pending):
    """What was left, which is taken away."""
    found = []
    for captured, file in pending.left():
        found.append((captured.request_body, captured.body))
        file.unlink()
    return found


def test_what_is_put_aside_is_found_again(path):
    """The exchanges of a recorder that was killed come back whole, in order, once; those of one
    that lives are left alone, and one that was not whole yet is gone."""
    path.mkdir()
    killed, alive = Pending(path), Pending(path)
    told = [answer(HELLO, "hi"), answer(MORE, "yes")]
    for exchange in told:
        killed.put(exchange)
    (killed._path / "00000009.jsonl").write_bytes(b'{"mockllm-tape": 1')
    mine = alive.put(answer([user("else")], "no"))
    os.close(killed._lock)
    heir = Pending(path)
    assert bodies(heir) == [(one.request_body, one.body) for one in told]
    assert bodies(heir) == []
    mine.unlink()
    for pending in (alive, heir):
        pending.close()
    assert [file.name for file in path.iterdir()] == [".recording.lock"]


def test_recorders_that_come_and_go_at_the_same_time(path):
    """Whatever was put aside is taken over once, by one of those that begin while others do and
    while others end."""
    path.mkdir()
    rounds, threads = 40, 4

    def come_and_go(number):
        taken = []
        for turn in range(rounds):
            pending = Pending(path)
            taken += bodies(pending)
            pending.put(answer([user(f"{number} {turn}")], "hi"))
            if turn % 2:
                pending.close()
            else:
                os.close(pending._lock)  # as if it were killed
        return taken

    with ThreadPoolExecutor(threads) as pool:
        taken = [one for found in pool.map(come_and_go, range(threads)) for one in found]
    heir = Pending(path)
    taken += bodies(heir)
    heir.close()
    asked = [json.loads(request)["messages"][0]["content"] for request, _ in taken]
    assert sorted(asked) == sorted(f"{n} {turn}" for n in range(threads) for turn in range(rounds))
    assert [file.name for file in path.iterdir()] == [".recording.lock"]


def test_what_could_not_become_a_scenario_stays(path):
    """A recorder that ends leaves to the next one what it has not finished."""
    path.mkdir()
    first = Pending(path)
    first.put(answer(HELLO, "hi"))
    first.close()
    second = Pending(path)
    assert len(bodies(second)) == 1
    second.close()


def test_locks_end_with_their_holder(path):
    """A lock that somebody has is not taken twice."""
    path.mkdir()
    held = locking.lock(path / "x")
    assert locking.lock(path / "x", wait=False) is None
    os.close(held)
    taken = locking.lock(path / "x", wait=False)
    fcntl.flock(taken, fcntl.LOCK_UN)
    os.close(taken)


def test_a_file_of_several_scenarios_is_not_rewritten(path):
    """A conversation that continues one of several in a file goes on in a file of its own."""
    write(Folder(path), answer(HELLO, "hi"))
    file = path / "hello.yaml"
    file.write_text(file.read_text() + "---\nscenario: beside\nturns: [{reply: {text: mine}}]\n")
    write(Folder(path), answer(MORE, "yes"))
    assert all_texts(path) == {"hello": ["hi"], "beside": ["mine"], "hello-2": ["hi", "yes"]}
