"""pydantic-ai: a call is executed whose event stream ended inside of a frame."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import boto3
from pydantic_ai import Agent
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.providers.bedrock import BedrockProvider


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = bytes.fromhex(Path(__file__).with_suffix(".hex").read_text())
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


def delete_files(path: str) -> str:
    print("deleted:", path, flush=True)
    raise SystemExit


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "k"}
    url = f"http://127.0.0.1:{server.server_port}"
    client = boto3.client("bedrock-runtime", "us-east-1", endpoint_url=url, **keys)
    model = BedrockConverseModel("m", provider=BedrockProvider(bedrock_client=client))
    Agent(model, tools=[delete_files]).run_stream_sync("Clean up.")
