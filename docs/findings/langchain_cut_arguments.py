"""LangChain (Python): arguments that the token limit cut off come out as a valid call."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from langchain_openai import ChatOpenAI

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    message = None
    for chunk in ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k").stream("Weather?"):
        message = chunk if message is None else message + chunk
    print("tool_calls:", [(call["name"], call["args"]) for call in message.tool_calls])
    print("invalid_tool_calls:", message.invalid_tool_calls)
    server.shutdown()
