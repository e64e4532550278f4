"""A client that sends on while the server closes gets the close frame, with code and reason."""

import asyncio
import json

import aiohttp
import pytest

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.timeouts import GIVE_UP

BROKEN = """
scenario: broken
match: any
turns:
  - reply: {text: one two three, split: words}
    fault: {cut: {after: 2 events, code: 4001, reason: enough}}
"""
PLAYED = """
scenario: played
route: GET /own
socket: text
turns:
  - client: [{text: hello}]
    service: [{text: hi}]
"""
ASK = json.dumps({"type": "response.create", "model": "m", "input": "hi"})


async def end_of(url, first):
    """The code and the reason with which a connection ends on which the client sends on."""
    async with aiohttp.ClientSession() as client, client.ws_connect(url) as socket:
        await socket.send_str(first)
        for _ in range(200):
            await socket.send_str(json.dumps({"type": "response.processed", "response_id": "x"}))
        while (message := await socket.receive(GIVE_UP)).type is aiohttp.WSMsgType.TEXT:
            pass
        return message.data, message.extra


@pytest.mark.parametrize(
    ("path", "first", "end"),
    [
        ("/v1/responses", ASK, (4001, "enough")),
        ("/own", "bye", (1008, 'turn 1: message: "hello" → "bye"')),
    ],
)
def test_the_client_sends_on(path, first, end):
    with ServerThread(loads(f"{BROKEN}---{PLAYED}"), ServerOptions(speed=0)) as server:
        for number in range(20):
            url = f"{server.url.replace('http', 'ws', 1)}/s/{number}{path}"
            assert asyncio.run(end_of(url, first)) == end
