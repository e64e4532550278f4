"""litellm: after a hundred streams or more, each read to its end, a call waits for ever."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from litellm import completion

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
ASK = {"model": "anthropic/claude-sonnet-4-5", "messages": [{"role": "user", "content": "Hi"}]}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(HEAD + Path(__file__).with_suffix(".sse").read_bytes())


def ask(url):
    for _ in range(5000):
        list(completion(**ASK, api_base=url, api_key="k", stream=True))
        answered.set()


answered = threading.Event()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
asking = threading.Thread(target=ask, args=[url], daemon=True)
asking.start()
while answered.wait(10):
    answered.clear()
print("a call waits" if asking.is_alive() else "no call waits")
