"""openai-agents: a call whose stream ended before its finish is executed."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import agents
import openai

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


async def main(url):
    tool = agents.function_tool(lambda path: print("executed:", path), name_override="delete")
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k")
    model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
    agent = agents.Agent("a", model=model, tools=[tool], tool_use_behavior="stop_on_first_tool")
    async for _ in agents.Runner.run_streamed(agent, "Clean up.").stream_events():
        pass


agents.set_tracing_disabled(True)
with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(main(f"http://127.0.0.1:{server.server_port}"))
    server.shutdown()
