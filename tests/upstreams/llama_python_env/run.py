"""Serves a model with the server of llama-cpp-python, on a free port until the standard input ends:

    python -m tests.upstreams.llama_python_env.run MODEL.gguf

Prints its URL before it listens; connections wait until then.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

import uvicorn
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings


def leave_with_the_input() -> None:
    """Ends the process when its standard input ends; uvicorn itself would wait for its clients."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    model = ModelSettings(
        model=sys.argv[1], model_alias="nonsense", n_ctx=2048, n_threads=1, verbose=False
    )
    app = create_app(server_settings=ServerSettings(), model_settings=[model])
    threading.Thread(target=leave_with_the_input, daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
