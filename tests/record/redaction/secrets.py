"""Secrets of many kinds, generated from a seed, and exchanges with the secret in every part."""

import base64
import json
import random
import string
from urllib.parse import quote

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction.placeholders import Placeholders
from mockllm.record.redaction.redact import Redactor

ALNUM = string.ascii_letters + string.digits
URL_SAFE = ALNUM + "-_"
HEX = "0123456789abcdef"


def drawn(rng, alphabet, count):
    """A word that ends in a letter or digit and has a digit."""
    return "".join(rng.choices(alphabet, k=count - 2)) + rng.choice("0123456789") + "z"


def pem(rng):
    """A private key as a text."""
    lines = "\n".join("".join(rng.choices(ALNUM + "+/", k=64)) for _ in range(4))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----", lines


def jwt(rng):
    """A token of three parts."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(json.dumps({"sub": drawn(rng, ALNUM, 12)}).encode())
    return f"{head}.{body.decode().rstrip('=')}.{drawn(rng, URL_SAFE, 43)}"


def aws(rng):
    """An access key and its secret."""
    id = "AKIA" + "".join(rng.choices(string.ascii_uppercase + string.digits, k=16))
    secret = "".join(rng.choices(ALNUM + "/+", k=38)) + "a1"
    return f"{id} and {secret}", secret


PREFIXED = {
    "sk-": (ALNUM, 48),
    "sk-proj-": (URL_SAFE, 120),
    "sk-ant-api03-": (URL_SAFE, 95),
    "sk-or-v1-": (HEX, 64),
    "AIza": (URL_SAFE, 35),
    "ya29.": (URL_SAFE, 60),
    "ghp_": (ALNUM, 36),
    "github_pat_": (ALNUM + "_", 82),
    "xoxb-": (ALNUM, 40),
    "AKIA": (string.ascii_uppercase + string.digits, 16),
    "sk_live_": (ALNUM, 24),
    "hf_": (ALNUM, 34),
    "gsk_": (ALNUM, 52),
    "xai-": (ALNUM, 80),
    "NRAK-": (string.ascii_uppercase + string.digits, 27),
    "figd_": (URL_SAFE, 40),
    "tgp_v1_": (URL_SAFE, 43),
    "jina_": (ALNUM, 60),
    "sq0csp-": (URL_SAFE, 43),
}


def secret(rng, index):
    """A text with a secret in it, and the secret."""
    kinds = [*PREFIXED, "jwt", "pem", "aws", "bearer", "email", "url", "assigned", "configured"]
    kind = kinds[index % len(kinds)]
    match kind:
        case "jwt":
            value = jwt(rng)
            return value, value
        case "pem":
            return pem(rng)
        case "aws":
            return aws(rng)
        case "bearer":
            value = drawn(rng, URL_SAFE, 40)
            return f"Bearer {value}", value
        case "email":
            value = f"{drawn(rng, string.ascii_lowercase, 12)}@{drawn(rng, ALNUM, 9).lower()}.io"
            return value, value
        case "url":
            value = drawn(rng, ALNUM, 20)
            return f"postgres://admin:{value}@db.internal:5432/app", value
        case "assigned":
            value = drawn(rng, HEX, 32)
            return f"api-key: {value}", value
        case "configured":
            value = f"cust#{drawn(rng, string.digits, 14)}"
            return value, value
    alphabet, count = PREFIXED[kind]
    if kind == "AKIA":
        value = kind + "".join(rng.choices(alphabet, k=count))
    else:
        value = kind + drawn(rng, alphabet, count)
    return value, value


def fragments(rng, text, high=9):
    """A text in parts of 1 to `high` characters."""
    parts, at = [], 0
    while at < len(text):
        size = rng.randint(1, high)
        parts.append(text[at : at + size])
        at += size
    return parts


def escaped(rng, text):
    """JSON text with escapes where none are needed."""
    return "".join(
        f"\\u{ord(c):04x}"
        if c == "-" or (c.isascii() and c.isalnum() and rng.random() < 0.1)
        else "\\/"
        if c == "/"
        else json.dumps(c, ensure_ascii=False)[1:-1]
        for c in text
    )


def _chat(rng, text):
    for fragment in fragments(rng, text):
        yield None, {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": fragment}}]}


def _chat_tools(rng, text):
    calls = [fragments(rng, json.dumps({"note": text})), fragments(rng, '{"city":"Paris"}')]
    while any(calls):
        index = rng.choice([i for i in (0, 1) if calls[i]])
        call = {"index": index, "function": {"arguments": calls[index].pop(0)}}
        yield None, {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def _responses(rng, text):
    kind = "response.output_text.delta"
    for fragment in fragments(rng, text):
        yield kind, {"type": kind, "item_id": "msg_1", "content_index": 0, "delta": fragment}
    done = {"type": "response.output_text.done", "item_id": "msg_1", "text": text}
    yield done["type"], done
    output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
    yield "response.completed", {"type": "response.completed", "response": {"output": output}}


def _anthropic(rng, text):
    for fragment in fragments(rng, json.dumps({"note": text})):
        delta = {"type": "input_json_delta", "partial_json": fragment}
        yield "content_block_delta", {"type": "content_block_delta", "index": 1, "delta": delta}


def _gemini(rng, text):
    for fragment in fragments(rng, text):
        yield None, {"candidates": [{"content": {"parts": [{"text": fragment}], "role": "model"}}]}


def _agui(rng, text):
    for number, fragment in enumerate(fragments(rng, text)):
        id = {"toolCallId": "call_1"} if number == 0 else {}
        yield None, {"type": "TOOL_CALL_CHUNK", **id, "delta": fragment}


STREAMS = (_chat, _chat_tools, _responses, _anthropic, _gemini, _agui)


def stream(rng, text, make, end="\n"):
    """An event stream that answers with a text."""
    lines = []
    for name, frame in make(rng, text):
        data = json.dumps(frame, separators=rng.choice([(",", ":"), (", ", ": ")]))
        lines += [f"event: {name}{end}" * bool(name), f"data: {data}{end}{end}"]
    return "".join(lines)


def exchange(rng, index, sentence, secret):
    """An exchange that has a secret in headers, query, request and reply."""
    end = rng.choice(["\n", "\r\n"])
    text = f"Sure, I noted {sentence} for you. Anything else?"
    body = stream(rng, text, STREAMS[index % len(STREAMS)], end).encode()
    chunks, at = [], 0
    while at < len(body):
        size = rng.randint(1, 60)
        chunks.append(TimedBytes(index + at, body[at : at + size]))
        at += size
    hidden = base64.b64encode(f"the note says: {sentence}".encode()).decode()
    content = f'{{"text":"{escaped(rng, sentence)}","file":"data:text/plain;base64,{hidden}"}}'
    calls = json.dumps({"arguments": json.dumps({"note": sentence})})
    request = f'{{"messages":[{{"role":"user","content":{content}}},{calls}]}}'
    line = secret.replace("\n", "")
    quoted = quote(line, safe="")
    return Captured(
        "POST",
        f"https://user:{quoted[:20]}@api.example.com/v1/chat?key={quoted}",
        (
            ("authorization", f"Bearer {line}"),
            ("cookie", f"a=1; s={line}"),
            ("user-agent", sentence),
        ),
        request.encode(),
        200,
        (("content-type", "text/event-stream"), ("set-cookie", f"s={line}; path=/")),
        tuple(chunks),
    )


def parts(secret, size=12):
    """Every run of so many characters of a secret, except those that all of its kind share."""
    common = ("sk-ant-api03", "k-ant-api03-", base64.urlsafe_b64encode(b'{"alg":"HS256","typ"'))
    found = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    return {part for part in found if part not in common and "\n" not in part}


def joined_strings(text):
    """All strings of the events of a stream, joined by their path."""
    joined = {}

    def walk(value, path):
        match value:
            case dict():
                for key, inner in value.items():
                    walk(inner, (*path, key))
            case list():
                for inner in value:
                    walk(inner, (*path, value.index(inner)))
            case str():
                joined[path] = joined.get(path, "") + value

    for line in text.splitlines():
        if line.startswith("data:"):
            walk(json.loads(line[5:]), ())
    return "\n".join(joined.values())


def generator(seed):
    """A seeded source of randomness."""
    return random.Random(seed)


def found_in(redactor, text):
    """The secrets in a text, the first of overlapping ones first."""
    return redactor.for_text(text, Placeholders()).finder.find(text)


def kept_headers(redactor, pairs, *, reply=False):
    """The headers of a request, or of a reply, as a recording has them."""
    request, answer = ((), tuple(pairs)) if reply else (tuple(pairs), ())
    clean = redactor.exchange(Captured("POST", "https://x.test/", request, b"", 200, answer, ()))
    return clean.headers if reply else clean.request_headers


def kept_url(url):
    """A URL as a recording has it."""
    return Redactor().exchange(Captured("POST", url, (), b"", 200, (), ())).url
