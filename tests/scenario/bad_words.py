# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Documents with keys in the wrong place, in the words of other tools, or with YAML that people
type for a text; with all their problems."""

from __future__ import annotations

from tests.scenario.documents import APIS, Row, top, turn

_NO_REPLY = "3:5: turns[0]: needs a 'reply', or 'http' for an error, or the 'answer' of a route"
_TEXT = "the text of a reply is 'reply: TEXT', or a part '{text: TEXT}'"

WORDS: list[Row] = [
    (
        "text in a turn",
        turn("text: hi"),
        [
            _NO_REPLY,
            "3:5: turns[0]: unknown key 'text'; it belongs into a part of 'reply', such as '{text: ...}'",
        ],
    ),
    (
        "arguments in a turn",
        turn("{reply: hi, arguments: {}}"),
        [
            "3:17: turns[0]: unknown key 'arguments'; it belongs into a part of 'reply', such as '{tool: ..., arguments: ...}'"
        ],
    ),
    (
        "user in a turn",
        turn("{reply: hi, user: ho}"),
        [
            "3:17: turns[0]: unknown key 'user'; it belongs into 'match' of the scenario, or 'request' of a turn"
        ],
    ),
    (
        "match in a turn",
        turn("{reply: hi, match: {user: a}}"),
        [
            "3:17: turns[0]: unknown key 'match'; it belongs into the scenario, beside 'turns'; what the request for one turn must have is its 'request'"
        ],
    ),
    (
        "quirks in a turn",
        turn("{reply: hi, quirks: []}"),
        ["3:17: turns[0]: unknown key 'quirks'; it belongs into 'wire' of a turn"],
    ),
    (
        "once",
        turn("{reply: hi, once: true}"),
        [
            "3:17: turns[0]: unknown key 'once'; how often a turn answers is 'times', such as 'times: 3'"
        ],
    ),
    (
        "finish_reason",
        turn("{reply: hi, finish_reason: stop}"),
        [
            "3:17: turns[0]: unknown key 'finish_reason'; why the answer ends is 'finish', such as 'finish: length'"
        ],
    ),
    (
        "fault of a scenario",
        top("fault: cut"),
        ["2:1: unknown key 'fault'; it belongs into a turn"],
    ),
    (
        "fixtures",
        top("fixtures: []"),
        [
            "2:1: unknown key 'fixtures'; these are fixtures of aimock: import them with mockllm import"
        ],
    ),
    (
        "tool of match",
        top("match: {tool: f}"),
        ["2:9: match: unknown key 'tool'; did you mean 'tools'?"],
    ),
    (
        "regex of match",
        top("match: {regex: a}"),
        ["2:9: match: unknown key 'regex'; it is about one text, such as 'user: {regex: ...}'"],
    ),
    (
        "temperature of match",
        top("match: {temperature: 0}"),
        [
            "2:9: match: unknown key 'temperature'; a field of the request is a condition on its body, such as 'body: {temperature: 0}'"
        ],
    ),
    (
        "list of texts",
        top("match: {user: [a, b]}"),
        [
            "2:15: match.user: must be a string, got a list; one of several is {any: [...]}, each of them {all: [...]}"
        ],
    ),
    (
        "message",
        turn("reply: {role: assistant, content: hi}"),
        [f"3:13: turns[0].reply: unknown key 'role'; 'reply' is what the model says; {_TEXT}"],
    ),
    (
        "call without tool",
        turn("reply: {name: f, arguments: {}}"),
        [
            "3:13: turns[0].reply: unknown key 'name'; the name of a scenario is 'scenario: NAME', that of a tool 'tool: NAME'"
        ],
    ),
    (
        "error as a part",
        turn("reply: {http: 429}"),
        ["3:13: turns[0].reply: unknown key 'http'; it belongs into a turn"],
    ),
    (
        "a key of another part",
        turn("reply: {image: {base64: R0lGODlh, type: image/gif}, split: 3}"),
        ["3:57: turns[0].reply: unknown key 'split'; known here: image, signature, every"],
    ),
    (
        "a key of a fault",
        turn("{reply: hi, fault: {cut: {at: 3 events}}}"),
        [
            "3:30: turns[0].fault.cut: needs one of 'after', 'inside', 'before', such as after: 3 events",
            "3:31: turns[0].fault.cut: unknown key 'at'; known here: after, inside, before, end, code, reason",
        ],
    ),
    (
        "status in quotes",
        turn('http: "429"'),
        [
            '3:11: turns[0].http: must be a whole number from 400 to 599, got "429"; take the quotes away'
        ],
    ),
    (
        "no space",
        turn("reply:hi"),
        [
            "3:5: turns[0]: must be a turn, a mapping with 'reply' or other keys, got reply:hi; after ':' belongs a space, as in 'reply: hi'"
        ],
    ),
    (
        "fault as an option",
        turn("{reply: hi, fault: 'cut:after=3 events'}"),
        ["3:24: turns[0].fault: is the text of an option; here write {cut: {after: 3 events}}"],
    ),
    (
        "fault as a sentence",
        turn("{reply: hi, fault: cut after 3 events}"),
        ["3:24: turns[0].fault: is the text of an option; here write {cut: {after: 3 events}}"],
    ),
    (
        "place without a key",
        turn("{reply: hi, fault: {cut: 3}}"),
        [
            "3:30: turns[0].fault.cut: must be a mapping with the keys after, inside, before, end, code, reason, got 3; such as {cut: {after: 3 events}}"
        ],
    ),
    (
        "fault of WireMock",
        turn("{reply: hi, fault: CONNECTION_RESET_BY_PEER}"),
        [
            "3:24: turns[0].fault: there is no fault 'CONNECTION_RESET_BY_PEER'; you may mean 'refuse'; there are: refuse, status, cut, stall, drip, burst, garble, error, duplicate, reorder, fragment, keepalive-closed, redirect"
        ],
    ),
]

WORDS += [
    (
        "API of a company",
        top("apis: [openai]"),
        [
            f"2:8: apis[0]: must be one of {APIS}, got openai; you may mean chat, responses, completions",
        ],
    ),
    (
        "comma in braces",
        turn("reply: {text: Hello, world!, split: words}"),
        ["3:26: turns[0].reply: unknown key 'world!'; a text with a comma in { } needs quotes"],
    ),
    (
        "finish of an API",
        turn("{reply: hi, finish: end_turn}"),
        [
            "3:25: turns[0].finish: must be one of stop, tool_calls, length, content_filter, refusal, none, got end_turn; you may mean stop",
        ],
    ),
]

TYPED: list[Row] = [
    (f"typed {text}", f"scenario: a\nturns:\n  - {text}\n", [f"{where}: not valid YAML: {message}"])
    for text, where, message in [
        ("reply: 'tis fine", "3:12", "a quote is opened here and never closed; a text with ' needs double quotes (found unexpected end of stream)"),
        ("reply: &c. it is", "3:14", "a text that begins with & needs quotes (did not find expected alphabetic or numeric character)"),
        ("reply: ? what", "3:12", "a text that begins with ? needs quotes (mapping keys are not allowed in this context)"),
        ("reply: - one", "3:12", "a text that begins with - needs quotes (block sequence entries are not allowed in this context)"),
        ("reply: | a table |", "3:14", "a text that begins with | or > needs quotes (did not find expected comment or line break)"),
        ("reply: hi\n   fault: cut", "4:4", "the line is indented otherwise than those that it belongs to (did not find expected '-' indicator)"),
        ("reply: hi\n<<<<<<< HEAD\n", "4:1", "the line is a mark of a merge conflict; keep one of the two sides"),
    ]
]  # fmt: skip
