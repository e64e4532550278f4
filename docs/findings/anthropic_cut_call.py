"""anthropic-python: a call whose connection ended comes out with empty input."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import anthropic

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = anthropic.Anthropic(base_url=url, api_key="k")
    question = [{"role": "user", "content": "Clean up."}]
    with client.messages.stream(model="m", max_tokens=9, messages=question) as stream:
        message = stream.get_final_message()
    print("stop_reason:", message.stop_reason)
    for block in message.content:
        print(block.type, block.id, block.name, block.input)
    server.shutdown()
