"""Serves a model with llama.cpp's own server, which xllamacpp includes, on a free port until the
standard input ends:

    python -m tests.upstreams.llama_env.run MODEL.gguf

Prints its URL when it listens.
"""

from __future__ import annotations

import sys

import xllamacpp


def parameters(model: str) -> xllamacpp.CommonParams:
    """Parameters for deterministic answers: one request at a time, on one core."""
    found = xllamacpp.CommonParams()
    found.model.path = model
    found.model_alias = {"nonsense"}
    found.port = 0
    found.n_ctx = 2048
    found.n_parallel = 1
    found.cpuparams.n_threads = 1
    found.cache_prompt = False
    found.verbosity = 0
    return found


if __name__ == "__main__":
    server = xllamacpp.Server(parameters(sys.argv[1]))
    print(server.listening_address, flush=True)
    sys.stdin.read()
