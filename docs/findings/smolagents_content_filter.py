"""smolagents: Azure's chunk of a content filter, whose choice has no delta, is an error."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from smolagents import OpenAIModel
from smolagents.models import ChatMessage

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    model = OpenAIModel("m", api_base=f"{url}/v1", api_key="k")
    question = [ChatMessage(role="user", content="Hi")]
    try:
        for delta in model.generate_stream(question):
            print("content:", delta.content)
    except ValueError as error:
        print("ValueError:", str(error)[:32])
    server.shutdown()
