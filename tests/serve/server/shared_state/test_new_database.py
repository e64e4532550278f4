"""A database that several processes open at the same time."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from mockllm.serve.server.state.sqlite_store import opened_tables
from tests.timeouts import GIVE_UP


def test_processes_may_open_a_new_database_at_the_same_time(tmp_path: Path) -> None:
    """SQLite fails at once, and does not wait, where several set the journal mode of a new file."""
    failed: list[sqlite3.Error] = []

    def opened(file: Path, barrier: threading.Barrier) -> None:
        database = sqlite3.connect(file, timeout=GIVE_UP, isolation_level=None)
        with closing(database):
            barrier.wait()
            try:
                opened_tables(database)
            except sqlite3.Error as error:
                failed.append(error)

    for number in range(50):
        file, barrier = tmp_path / f"{number}.db", threading.Barrier(6)
        threads = [threading.Thread(target=opened, args=(file, barrier)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed
