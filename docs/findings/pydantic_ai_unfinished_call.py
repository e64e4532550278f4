"""pydantic-ai: a call whose stream ended before its finish is executed."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


async def main(url):
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="k")
    agent = Agent(OpenAIChatModel("m", provider=provider))
    agent.tool_plain(lambda path: print("executed:", path), name="delete")
    limit = UsageLimits(request_limit=1)
    async with agent.run_stream_events("Clean up.", usage_limits=limit) as events:
        async for _ in events:
            pass


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(main(f"http://127.0.0.1:{server.server_port}"))
