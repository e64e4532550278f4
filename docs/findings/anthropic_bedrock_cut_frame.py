"""anthropic-python on Bedrock: an event stream that ended inside of a frame is a message."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import anthropic


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = bytes.fromhex(Path(__file__).with_suffix(".hex").read_text())
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    keys = {"aws_access_key": "k", "aws_secret_key": "k", "aws_region": "us-east-1"}
    client = anthropic.AnthropicBedrock(base_url=f"http://127.0.0.1:{server.server_port}", **keys)
    question = [{"role": "user", "content": "Clean up."}]
    with client.messages.stream(model="m", max_tokens=9, messages=question) as stream:
        message = stream.get_final_message()
    print("stop_reason:", message.stop_reason)
    for block in message.content:
        print(block.type, block.id, block.name, block.input)
    server.shutdown()
