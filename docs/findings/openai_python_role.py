"""openai-python: a role in every chunk, as some servers send it, is joined."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import openai

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="k")
    question = [{"role": "user", "content": "Weather and time?"}]
    with client.chat.completions.stream(model="m", messages=question) as stream:
        message = stream.get_final_completion().choices[0].message
    print("role:", message.role)
    server.shutdown()
