"""Plays requests and answers through gateways: python replay.py [GATEWAY...] > replayed.txt

It has the bytes of a client's request and of a service's answer from replayed.json, starts each
gateway as reproduce.py does, serves the answer from a socket, sends the request, and prints what
the gateway asked and what the client got, and whether that shows the finding. It needs PyYAML for
the presets, and nothing of mockllm.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reproduce import running

ENTRIES = json.loads((Path(__file__).parent / "replayed.json").read_text("utf-8"))
MOST = 3000


def read_request(connection: socket.socket) -> bytes:
    """The body of an HTTP request."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65536)
        whole, rest = b"", body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            whole, rest = whole + rest[:length], rest[length + 2 :]
        return whole
    while len(body) < int(fields.get(b"content-length", b"0")):
        body += connection.recv(65536)
    return body


def serve(listener: socket.socket, entry: dict[str, Any], asked: list[bytes]) -> None:
    """Answers every request with the entry's answer, until the listener is closed."""
    answer = base64.b64decode(entry["answer"])
    head = f"HTTP/1.1 {entry['status']} X\r\ncontent-type: {entry['content_type']}\r\n"
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            body = read_request(connection)
            if body:
                asked.append(body)
            connection.sendall(f"{head}connection: close\r\n\r\n".encode() + answer)


def ask(url: str, entry: dict[str, Any], model: str, options: list[str]) -> tuple[int, bytes]:
    """The status and the body that the client gets."""
    parts = urlsplit(url)
    client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    pairs = pairwise(options)
    further = dict(value.split(":", 1) for name, value in pairs if name == "--header")
    path = options[options.index("--path") + 1] if "--path" in options else entry["path"]
    body = json.dumps(
        {**entry["request"], **({"model": model} if "model" in entry["request"] else {})}
    )
    headers = {"content-type": "application/json", **entry["headers"], **further}
    client.request("POST", path.replace("{model}", model), body, headers)
    got = client.getresponse()
    return got.status, got.read()


def shows(entry: dict[str, Any], asked: bytes, status: int, got: bytes) -> bool:
    """Whether a text is there as often as the finding says."""
    show = entry["shows"]
    if "status" in show:
        return bool(status == show["status"])
    text = (asked if show["side"] == "upstream" else got).decode("utf-8", "replace")
    count = text.replace(" ", "").count(show["text"].replace(" ", ""))
    return bool(show["least"] <= count <= show["most"])


def main(names: list[str]) -> int:
    """Plays the entries; 1 where a finding does not show."""
    missing = 0
    for entry in ENTRIES:
        if names and entry["gateway"] not in names:
            continue
        with running(entry["gateway"], entry["down"], entry["up"]) as options:
            given = dict(zip(options[::2], options[1::2], strict=False))
            asked: list[bytes] = []
            listener = socket.create_server(("127.0.0.1", int(given["--listen"])))
            threading.Thread(target=serve, args=(listener, entry, asked), daemon=True).start()
            try:
                status, got = ask(given["--gateway"], entry, given["--model"], options)
            finally:
                listener.close()
        sent = asked[-1] if asked else b""
        shown = shows(entry, sent, status, got)
        missing += not shown
        print(f"=== {entry['gateway']} over {entry['down']}-{entry['up']}: {entry['case']}")
        print(
            f"{entry['says']}: {'shown' if shown else 'NOT SHOWN'} ({json.dumps(entry['shows'])})"
        )
        print(f"--- asked\n{sent.decode('utf-8', 'replace')[:MOST]}")
        print(f"--- got, status {status}\n{got.decode('utf-8', 'replace')[:MOST]}\n", flush=True)
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
