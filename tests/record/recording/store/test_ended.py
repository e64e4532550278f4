"""The log of the exchanges that have ended: what a recorder that was killed has lost."""

import os
from concurrent.futures import ThreadPoolExecutor

from mockllm.record.recording.store.ended import EndedExchanges, WrittenExchanges


def killed(log, *others):
    """Frees the locks of a recorder, as the system does when it is killed."""
    for handle in (log._log._lock, *(held for _, held in log._dead)):
        os.close(handle)
    for other in others:
        os.close(other._log._lock)


def sources(log):
    return [line.partition(",")[0] for line in log.missing]


def test_what_was_not_written_is_missing(tmp_path):
    """The next recorder tells the exchanges that ended and were not written, in their order. Those
    of a recorder that lives are not touched, and a line that was cut is none."""
    dead, alive = EndedExchanges(tmp_path), EndedExchanges(tmp_path)
    written = WrittenExchanges(dead.path)
    for number in range(1, 5):
        dead.add(number, f"POST /{number}")
    written.add([1, 3])
    dead._log.add("5 2026-11-23")
    alive.add(1, "POST /alive")
    killed(dead, written)
    heir = EndedExchanges(tmp_path)
    assert sources(heir) == ["POST /2", "POST /4"]
    for log in (heir, alive):
        log.close()
    assert [file.name for file in tmp_path.iterdir()] == [".recording.lock"]


def test_it_is_told_until_a_recorder_ends_by_itself(tmp_path):
    """One that is killed at once may not have told anybody."""
    first = EndedExchanges(tmp_path)
    first.add(1, "POST /first")
    killed(first)
    second = EndedExchanges(tmp_path)
    second.add(1, "POST /second")
    killed(second)
    third = EndedExchanges(tmp_path)
    assert sorted(sources(third)) == ["POST /first", "POST /second"]
    third.close()
    last = EndedExchanges(tmp_path)
    assert sources(last) == []
    last.close()


def test_recorders_that_come_and_go_at_the_same_time(tmp_path):
    """Of those that end by themselves one tells each exchange that is missing."""
    rounds, threads = 40, 4

    def come_and_go(number):
        told = []
        for turn in range(rounds):
            log = EndedExchanges(tmp_path)
            log.add(1, f"{number} {turn}")
            if turn % 2:
                told += sources(log)
                log.close()
            else:
                killed(log)
        return told

    with ThreadPoolExecutor(threads) as pool:
        told = [source for sources in pool.map(come_and_go, range(threads)) for source in sources]
    last = EndedExchanges(tmp_path)
    told += sources(last)
    last.close()
    lost = [f"{number} {turn}" for number in range(threads) for turn in range(0, rounds, 2)]
    assert sorted(told) == sorted(lost)
    assert [file.name for file in tmp_path.iterdir()] == [".recording.lock"]
