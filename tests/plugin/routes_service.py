"""A small service with the routes that a suite of the official OpenAI SDK calls.

It makes up ids, so that no two answers are equal. As a program, `routes_service.py PORT_FILE`
writes its port into a file and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import threading
import uuid
from pathlib import Path
from typing import Any, Self

from aiohttp import web

PICTURE = b"\x89PNG\r\n\x1a\n\x00\xff picture"


class RoutesService:
    """Listens on loopback in a thread of its own while the `with` block lasts.

    `url` is its address without a path, `requests` are the method and path of each request.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._files: dict[str, bytes] = {}
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=2**26, middlewares=[self._counted])
        app.router.add_post("/v1/chat/completions", _chat)
        app.router.add_post("/v1/embeddings", _embeddings)
        app.router.add_post("/v1/moderations", _moderations)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/images/generations", _image)
        app.router.add_get("/v1/models", _models)
        app.router.add_post("/v1/audio/transcriptions", _transcription)
        return app

    @web.middleware
    async def _counted(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        id = f"file-{uuid.uuid4().hex}"
        self._files[id] = file.file.read()
        found = {"bytes": len(self._files[id]), "filename": file.filename, "status": "processed"}
        head = {"id": id, "object": "file", "created_at": 1, "purpose": form["purpose"]}
        return web.json_response(head | found)

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self._files[request.match_info["id"]])


def _id(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex}"


async def _chat(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    if body.get("tools"):
        call = {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
        calls = [{"id": _id("call"), "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        return web.json_response(_completion(message, "tool_calls"))
    if not body.get("stream"):
        return web.json_response(_completion({"role": "assistant", "content": "Bern."}, "stop"))
    answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await answer.prepare(request)
    head = {"id": _id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [{"role": "assistant", "content": ""}, {"content": "Be"}, {"content": "rn."}, {}]
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
        await answer.write(b"data: %b\n\n" % json.dumps({**head, "choices": [choice]}).encode())
    await answer.write(b"data: [DONE]\n\n")
    return answer


def _completion(message: dict[str, Any], finish: str) -> dict[str, Any]:
    return {
        "id": _id("chatcmpl"),
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


async def _embeddings(request: web.Request) -> web.Response:
    body = await request.json()
    vector: Any = [0.25, -0.5]
    if body.get("encoding_format") == "base64":
        vector = base64.b64encode(b"\x00\x00\x80>\x00\x00\x00\xbf").decode()
    data = [{"object": "embedding", "index": 0, "embedding": vector}]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return web.json_response({"object": "list", "data": data, "model": "e", "usage": usage})


async def _moderations(request: web.Request) -> web.Response:
    flagged = "fight" in (await request.json())["input"]
    names = ("violence", "hate")
    result = {
        "flagged": flagged,
        "categories": {name: flagged and name == "violence" for name in names},
        "category_scores": dict.fromkeys(names, 0.5),
    }
    return web.json_response({"id": _id("modr"), "model": "omni", "results": [result]})


async def _image(request: web.Request) -> web.Response:
    await request.read()
    picture = base64.b64encode(PICTURE).decode()
    return web.json_response({"created": 1, "data": [{"b64_json": picture}]})


async def _models(request: web.Request) -> web.Response:
    models = [{"id": name, "object": "model", "created": 1, "owned_by": "o"} for name in "ab"]
    return web.json_response({"object": "list", "data": models})


async def _transcription(request: web.Request) -> web.Response:
    form = await request.post()
    file = form["file"]
    assert isinstance(file, web.FileField)
    return web.json_response({"text": f"{len(file.file.read())} bytes of {file.filename}"})


if __name__ == "__main__":
    with RoutesService() as service:
        Path(sys.argv[1]).write_text(str(service.port))
        threading.Event().wait()
