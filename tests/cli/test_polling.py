"""`mockllm serve --reload` looks at the files again and again."""

import asyncio
import contextlib
import os

import pytest

from mockllm.cli.serving.listening import poll
from tests.cli.conftest import GIVE_UP


@pytest.mark.parametrize("deep", [True, False])
def test_changes_are_found(tmp_path, deep):
    """A file that is new, changed, or gone is a change; one in a subfolder only where that is
    watched. Other files of the same time and size are found by their inode."""
    folder = tmp_path / "watched"
    below = folder / "below"
    below.mkdir(parents=True)
    (folder / "one.yaml").write_text("one")

    def replace():
        before = (folder / "one.yaml").stat()
        (tmp_path / "new").write_text("two")
        os.utime(tmp_path / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
        (tmp_path / "new").replace(folder / "one.yaml")

    async def watch():
        stop = asyncio.Event()
        changes = poll([folder], stop, deep=deep, period=0.01)
        for change in (
            replace,
            (folder / "two.yaml").touch,
            (folder / "two.yaml").unlink,
            *([(below / "three.yaml").touch] if deep else []),
        ):
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            change()
            await asyncio.wait_for(waiting, GIVE_UP)
        last = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        if not deep:
            (below / "three.yaml").touch()
        stop.set()
        with contextlib.suppress(StopAsyncIteration):
            await asyncio.wait_for(last, GIVE_UP)
            raise AssertionError("a change in a folder that is not watched")

    asyncio.run(watch())
