"""llama-index: of two calls in one chunk, only the first is read."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAI

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    llm = OpenAI(model="gpt-4o", api_base=f"{url}/v1", api_key="k")
    *_, last = llm.stream_chat([ChatMessage(role="user", content="Weather and time?")])
    for call in llm.get_tool_calls_from_response(last, error_on_no_tool_call=False):
        print(call.tool_id, call.tool_name, call.tool_kwargs)
    server.shutdown()
