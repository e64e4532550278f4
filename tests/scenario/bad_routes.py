# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Documents with mistakes in routes that call no model, with all their problems."""

from __future__ import annotations

from tests.scenario.documents import Row


def route(written: str) -> str:
    """A scenario with this route."""
    return f"scenario: a\nroute: {written}\nturns:\n  - answer: {{text: hi}}\n"


def answer(keys: str) -> str:
    """A scenario with this answer."""
    return f"scenario: a\nroute: GET /x\nturns:\n  - answer: {keys}\n"


def top(lines: str, turn: str = "answer: {text: hi}") -> str:
    """A scenario with a route and these lines, and this turn."""
    return f"scenario: a\nroute: GET /x\n{lines}\nturns:\n  - {turn}\n"


def socket(turn: str) -> str:
    """A scenario with a WebSocket and this turn."""
    return f"scenario: a\nroute: GET /x\nsocket: text\nturns:\n  - {turn}\n"


_METHODS = "; methods: GET, HEAD, POST, PUT, PATCH, DELETE"
_EXAMPLE = "must be a method and a path, such as POST /v1/embeddings, got"

ROUTES: list[Row] = [
    (
        "message without kind",
        socket("service: [{type: ping}]"),
        [
            "5:15: turns[0].service[0]: must have one of json, text, base64, close, got none",
            "5:16: turns[0].service[0]: unknown key 'type'; known here: json, text, base64, close",
        ],
    ),
    (
        "message of two kinds",
        socket("service: [{text: a, json: {}}]"),
        [
            "5:15: turns[0].service[0]: must have one of json, text, base64, close, got json and text"
        ],
    ),
    (
        "message of JSON that is no object",
        socket("client: [{json: 5}]"),
        [
            "5:21: turns[0].client[0].json: must be a JSON object or array, got 5; other messages are a 'text' or 'base64'"
        ],
    ),
    (
        "message of bytes",
        socket("client: [{base64: '<many bytes>'}]"),
        [
            '5:23: turns[0].client[0].base64: must be base64 text, or how many bytes it stands for, such as <4800 bytes>, got "<many bytes>"'
        ],
    ),
    (
        "messages beside an answer",
        socket("{answer: {text: a}, service: [{text: a}]}"),
        [
            "5:5: turns[0]: has 'answer', the answer of a route, and 'service'; keep one of them",
        ],
    ),
    (
        "job pending",
        "scenario: a\nturns:\n  - reply: {text: hi}\n    job: {pending: 3}\n",
        [
            "4:20: turns[0].job.pending: must be a number of polls such as '3 polls', or a duration such as '2s', got 3"
        ],
    ),
    (
        "route without method",
        route("/v1/embeddings"),
        [f"2:8: route: {_EXAMPLE} /v1/embeddings{_METHODS}"],
    ),
    (
        "route method typo",
        route("PSOT /v1/embeddings"),
        [f"2:8: route: {_EXAMPLE} PSOT /v1/embeddings; did you mean 'POST'?"],
    ),
    (
        "route options",
        route("OPTIONS /x"),
        [f"2:8: route: {_EXAMPLE} OPTIONS /x{_METHODS}"],
    ),
    (
        "route without slash",
        route("POST v1"),
        [f"2:8: route: {_EXAMPLE} POST v1; in the path, {{name}} is one segment and * is any text"],
    ),
    (
        "route with query",
        route("GET /x?limit=2"),
        [
            f"2:8: route: {_EXAMPLE} GET /x?limit=2; a query is a condition: match: {{query: {{name: value}}}}"
        ],
    ),
    (
        "route open brace",
        route("GET /x/{id"),
        [
            f"2:8: route: {_EXAMPLE} GET /x/{{id; in the path, {{name}} is one segment and * is any text"
        ],
    ),
    (
        "route of mockllm",
        route("GET /_mockllm/health"),
        ["2:8: route: is a path of mockllm itself: /_mockllm/... and /s/SESSION/..."],
    ),
    (
        "route of a session",
        route("GET /s/one/v1/models"),
        ["2:8: route: is a path of mockllm itself: /_mockllm/... and /s/SESSION/..."],
    ),
    (
        "answer text",
        answer("hi"),
        [
            "4:13: turns[0].answer: must be a mapping with the keys status, headers, json, text, base64, file, got hi"
        ],
    ),
    (
        "answer typo",
        answer("{jsn: {}}"),
        ["4:14: turns[0].answer: unknown key 'jsn'; did you mean 'json'?"],
    ),
    (
        "answer two bodies",
        answer("{json: 1, text: a}"),
        ["4:13: turns[0].answer: must have one body, got json and text"],
    ),
    (
        "answer status",
        answer("{status: 101}"),
        ["4:22: turns[0].answer.status: must be a whole number from 200 to 599, got 101"],
    ),
    (
        "answer base64",
        answer("{base64: a*}"),
        ["4:22: turns[0].answer.base64: must be base64 text, got a*"],
    ),
    (
        "answer base64 length",
        answer("{base64: QUJ}"),
        ["4:22: turns[0].answer.base64: must be base64 text, got QUJ"],
    ),
    (
        "answer file above",
        answer("{file: ../a.bin}"),
        [
            "4:20: turns[0].answer.file: must be a path inside the folder of this file, such as name.1.jsonl, got ../a.bin"
        ],
    ),
    (
        "answer and reply",
        top("", "{answer: {text: a}, reply: {text: a}}"),
        ["5:5: turns[0]: has 'answer', the answer of a route, and 'reply'; keep one of them"],
    ),
]
"""Mistakes of shape, which the JSON Schema refuses, too."""

ROUTE_SEMANTICS: list[Row] = [
    (
        "messages without a socket",
        "scenario: a\nroute: GET /x\nturns:\n  - client: [{text: a}]\n",
        ["4:13: turns[0].client: needs 'socket: text', or binary, and a 'route' in its scenario"],
    ),
    (
        "a socket that begins again",
        socket("service: [{text: a}]") + "then: restart\n",
        ["6:7: then: has no meaning for the sessions of a WebSocket; remove it"],
    ),
    (
        "socket without a route",
        "scenario: a\nsocket: text\nturns:\n  - service: [{text: a}]\n",
        ["2:9: socket: needs a 'route: GET /path', by which clients open it"],
    ),
    (
        "close before the end",
        socket("service: [{close: {}}, {text: a}]"),
        [
            "5:23: turns[0].service[0].close: must be the last message; what follows it is a turn of the next connection"
        ],
    ),
    (
        "close code",
        socket("service: [{close: {code: 1006}}]"),
        [
            "5:30: turns[0].service[0].close.code: must be 1000 or more, or 0 for none, and 1006 is never sent"
        ],
    ),
    (
        "close reason",
        socket(f"service: [{{close: {{reason: {'a' * 124}}}}}]"),
        [
            "5:32: turns[0].service[0].close.reason: is longer than 123 bytes, and a frame has no more"
        ],
    ),
    (
        "an answer to the end",
        socket("{client: [{close: {}}], service: [{text: a}]}"),
        ["5:38: turns[0].service: comes after the client has closed; make it the next turn"],
    ),
    (
        "times of messages",
        socket("{service: [{text: a}], timing: {at: [0, 1s]}}"),
        ["5:41: turns[0].timing.at: must have a time for each message of 'service': 1"],
    ),
    (
        "a tape in the middle",
        socket("service: [{text: a}]\n  - {recorded: a.jsonl, client: [{text: b}]}"),
        ["6:16: turns[1].recorded: belongs to the first turn: it is of the whole session"],
    ),
    (
        "route with reply",
        top("", "reply: {text: a}"),
        ["5:12: turns[0].reply: must be an 'answer': a route calls no model"],
    ),
    (
        "route with http",
        top("", "http: 429"),
        ["5:11: turns[0].http: must be an 'answer: {status: 429}': a route has no API"],
    ),
    (
        "answer without route",
        "scenario: a\nturns:\n  - answer: {text: a}\n",
        [
            "3:13: turns[0].answer: needs a 'route: METHOD /path' in its scenario; a model's turn has a 'reply'"
        ],
    ),
    (
        "groups",
        "scenario: a\nroute: GET /x\nmatch: {any: [{user: a}], not: {user_files: {count: 1}, body: {regex: a}}}\n"
        "turns: [{answer: {json: 1}}]\n",
        [
            "3:22: match.any[0].user: needs a conversation, and a 'route' has none; its conditions are model, headers, query and body",
            "3:45: match.not.user_files: needs a conversation, and a 'route' has none; its conditions are model, headers, query and body",
            "3:63: match.not.body: is compared as JSON, so 'regex' is no operator here: only conditions on texts have operators, as headers and query of a route are",
        ],
    ),
    (
        "route with conversation",
        top("match: {user: hi, tools: [f]}\napis: [chat]"),
        [
            "3:15: match.user: needs a conversation, and a 'route' has none; its conditions are model, headers, query and body",
            "3:26: match.tools: needs a conversation, and a 'route' has none; its conditions are model, headers, query and body",
            "4:7: apis: has no meaning with a 'route', which calls no model; remove it",
        ],
    ),
    (
        "route name twice",
        route("GET /{id}/{id}"),
        ["2:8: route: has {id} twice; each segment needs a name of its own"],
    ),
    (
        "route turn keys",
        top("", "{answer: {text: a}, finish: stop, times: 2, repeat: true, timing: {every: 1s}}"),
        [
            "5:33: turns[0].finish: has no meaning in a turn of a route; remove it",
            "5:46: turns[0].times: has no meaning in a turn of a route; remove it",
            "5:57: turns[0].repeat: is not needed: the last turn of a route stays; 'then: restart' of the scenario begins with the first again",
            "5:71: turns[0].timing: of a route has no key but ttft: its answer is not a stream",
        ],
    ),
    (
        "answer 204",
        answer("{status: 204, text: a}"),
        ["4:33: turns[0].answer.text: is a body, and an answer with status 204 has none"],
    ),
    (
        "answer framing",
        answer("{headers: {Content-Length: '1'}}"),
        [
            "4:23: turns[0].answer.headers.content-length: is a header that the server makes; remove it"
        ],
    ),
    (
        "same routes",
        "scenario: a\nroute: GET /x/{a}\nturns: [{answer: {text: a}}]\n---\n"
        "scenario: b\nroute: GET /x/{b}\nturns: [{answer: {text: b}}]\n",
        [
            "6:8: route: matches the same requests as scenario 'a', at <text>:2:8; add a condition to one of them, or a 'priority'"
        ],
    ),
    (
        "job of a conversation with a route",
        "scenario: a\nturns:\n  - reply: {text: hi}\n    job: {pending: 3 polls, poll: 'GET /x/{id}'}\n",
        [
            "4:35: turns[0].job.poll: belongs to a turn of a route; here the API has its routes, and 'reply' is what the job comes to"
        ],
    ),
    (
        "job of a route expires",
        "scenario: a\nroute: POST /x\nturns:\n  - answer: {json: {id: '{id}'}}\n    job: {pending: 2s, expires: true, poll: 'GET /x/{id}', then: {text: x}}\n",
        [
            "5:33: turns[0].job.expires: belongs to a conversation; write 'then' as it has expired",
        ],
    ),
    (
        "job of an error",
        "scenario: a\nturns:\n  - http: 500\n    job: {pending: 3 polls}\n",
        ["4:10: turns[0].job: needs a 'reply', which is what the job comes to"],
    ),
    (
        "job without routes",
        "scenario: a\nroute: POST /x\nturns:\n  - answer: {json: {id: x}}\n    job: {pending: 2s}\n",
        [
            "4:13: turns[0].answer: must have {id} somewhere, or no client knows which job it has to poll",
            "5:10: turns[0].job: needs the key 'poll', since its turn is one of a route",
            "5:10: turns[0].job: needs the key 'then', since its turn is one of a route",
        ],
    ),
    (
        "job without ids",
        "scenario: a\nroute: POST /x\nturns:\n  - answer: {json: {id: '{id}'}}\n    job:\n      pending: 2s\n      poll: GET /y\n      then: {text: x}\n      cancel: {route: POST /y, answer: {text: x}}\n      list: {route: GET /x, answer: {json: []}}\n",
        [
            "7:13: turns[0].job.poll: must have {id} in its path",
            "9:23: turns[0].job.cancel.route: must have {id} in its path",
            "10:37: turns[0].job.list.answer: must have the text {jobs} where the list of jobs stands",
        ],
    ),
]
"""Contradictions between values, which a schema cannot find."""
