"""`scrub` writes the same files in every process."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import json
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.scrub import scrub

common = "Zq8x0Vb2Nm4Kl6Jh"
logins = [{"password": f"{common}{number:04}"} for number in range(12)]
files = {"a.json": json.dumps(logins), "b.txt": f"it began with {common} and broke off"}
for one in scrub({name: text.encode() for name, text in files.items()}, Redactor()):
    print(one.file, one.content.decode())

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured

def redacted(headers, body):
    chunks = (TimedBytes(0, body.encode()),)
    captured = Captured("POST", "https://a.test", headers, b"", 200, (), chunks)
    return Redactor().exchange(captured).body

words = [login["password"] for login in logins]
print(redacted((("x-auth", "; ".join(words)),), f"{words} began with {common} and broke off"))
print(redacted((), json.dumps({"logins": logins[::-1], "note": f"{common} broke off"})))
"""


def scrubbed(seed):
    """Two files and an exchange, scrubbed by a process with this hash seed."""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout


@pytest.mark.slow
def test_placeholders_do_not_depend_on_hashes():
    """A part that many secrets share gets the placeholder of the first of them, whatever the
    iteration order of a set is."""
    first, second = scrubbed("0"), scrubbed("1")
    assert first == second
    assert "it began with REDACTED-1xxx" in first
