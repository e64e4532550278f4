"""How long redaction takes for texts that were slow once, by their length.

    python measurements/benchmarks/redaction.py [--megabytes 4] [--copies 3000]

Zeros in base64 are silence and blank images; beside them the request has a token that begins with
zeros, as those of X do. That the steps are proportional to the text is a test
(tests/record/redaction/test_linear_time.py); this shows how much time they take.
"""

from __future__ import annotations

import argparse
import base64
import json
import time

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction.redact import Redactor

KEY = "sk-proj-" + "Ab3dEf6hIj" * 4
TOKEN = "AAAAAAAAAAAAAAAAAAAAAMLheAAAAAAA0BuSeidULvsea4JtiGRiSDSJSI"


def seconds(text: str) -> float:
    """CPU time for an exchange with this answer."""
    headers = (("authorization", f"Bearer {TOKEN}"),)
    chunks = (TimedBytes(0, text.encode()),)
    exchange = Captured("POST", "https://a.test/v1", headers, b"", 200, (), chunks)
    start = time.process_time()
    Redactor().exchange(exchange)
    return time.process_time() - start


def main() -> None:
    """Prints a line for each text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--copies", type=int, default=3000)
    options = parser.parse_args()
    size = int(options.megabytes * 1_000_000)
    events = (
        {"choices": [{"index": number % 3, "delta": {"content": part}}]}
        for number in range(options.copies)
        for part in (f"x {KEY[:20]}", f"{KEY[20:]} y")
    )
    texts = {
        "zeros in base64": base64.b64encode(bytes(size * 3 // 4)).decode(),
        "eyJ-eyJ-": "eyJ-" * (size // 4),
        "key=key=": "key=" * (size // 4),
        "copies of a key in a stream": "".join(f"data: {json.dumps(e)}\n\n" for e in events),
        "different keys": " ".join(f"sk-{number:08}Ab3dEf6hIj" for number in range(options.copies)),
    }
    for name, text in texts.items():
        print(f"{name:30} {len(text):>9} characters {seconds(text):7.2f} s")


if __name__ == "__main__":
    main()
