"""The end of a server that listens."""

import asyncio

from mockllm.cli.serving.listening import cancel_until_done


def test_a_task_that_swallows_a_cancellation_is_cancelled_again():
    """aiohttp's shutdown suppresses `CancelledError`; what follows it would wait for ever."""

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    async def run():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await asyncio.wait_for(cancel_until_done(task), 60)
        return task.cancelled()

    assert asyncio.run(run())
