# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Documents with a wrong shape in their turns, with all their problems."""

from __future__ import annotations

from tests.scenario.documents import APIS, Row, turn, two

TURNS: list[Row] = [
    (
        "fault unknown",
        turn("{reply: {text: a}, fault: cutt}"),
        [
            "3:31: turns[0].fault: there is no fault 'cutt'; did you mean 'cut'?",
        ],
    ),
    (
        "fault of connections",
        turn("{reply: {text: a}, fault: {limit: {number: 2}}}"),
        [
            "3:32: turns[0].fault: limit is a fault of a server's connections, such as `mockllm serve --fault limit:number=2`",
        ],
    ),
    (
        "fault without a place",
        turn("{reply: {text: a}, fault: cut}"),
        [
            "3:31: turns[0].fault: needs one of 'after', 'inside', 'before', such as after: 3 events",
        ],
    ),
    (
        "fault at two places",
        turn("{reply: {text: a}, fault: {cut: {after: 1 event, before: done}}}"),
        [
            "3:37: turns[0].fault.cut: strikes at one place; keep one of after, before",
        ],
    ),
    (
        "fault at no place",
        turn("{reply: {text: a}, fault: {cut: {after: 3}, stall: {inside: it}}}"),
        [
            "3:45: turns[0].fault.cut.after: must be a place such as '3 events', '120 bytes' or '1.2s', got 3",
            "3:65: turns[0].fault.stall.inside: must be 'event 3', 'event 3 payload' (or prelude, headers, checksum), 'character', 'text', 'reasoning', 'refusal' or 'ID arguments', got it",
        ],
    ),
    (
        "fault of two speeds",
        turn("{reply: {text: a}, fault: {drip: {rate: 5, every: 1s}}}"),
        [
            "3:38: turns[0].fault.drip: has one speed; keep 'rate' or 'every'",
        ],
    ),
    (
        "fault key",
        turn("{reply: {text: a}, fault: {burst: {pauze: 1s}}}"),
        [
            "3:40: turns[0].fault.burst: unknown key 'pauze'; did you mean 'pause'?",
        ],
    ),
    (
        "fault list",
        turn("{reply: {text: a}, fault: [refuse]}"),
        [
            "3:31: turns[0].fault: must be the name of a fault, or such as {cut: {after: 3 events}}, got a list",
        ],
    ),
    (
        "fault for",
        turn("{reply: {text: a}, fault: {stall: {for: 5}}}"),
        [
            "3:45: turns[0].fault.stall.for: must be a duration such as 300ms, 2s, 500us or 1m, got 5; say the unit",
        ],
    ),
    (
        "try with both",
        turn("{reply: {text: a}, attempts: [{http: 429, reply: {text: b}}]}"),
        [
            "3:35: turns[0].attempts[0]: 'reply' is part of an answer, and this try gets an error; keep one",
        ],
    ),
    (
        "try with parts of both",
        turn("{reply: {text: a}, attempts: [{retry_after: 1s, reply: {text: b}}]}"),
        [
            "3:35: turns[0].attempts[0]: needs 'http', the status of the error, or 'reply' or 'fault' for an answer; a recorded try may do without",
        ],
    ),
    (
        "turn",
        turn("hello"),
        [
            "3:5: turns[0]: must be a turn, a mapping with 'reply' or other keys, got hello; what the model says is 'reply: TEXT'",
        ],
    ),
    (
        "recorded",
        turn("{reply: {text: a}, recorded: {request: 0123456789abcdef}}"),
        [
            "3:34: turns[0].recorded: needs the key 'file'",
        ],
    ),
    (
        "recorded above",
        turn("{reply: {text: a}, recorded: ../a.jsonl}"),
        [
            "3:34: turns[0].recorded: must be a path inside the folder of this file, such as name.1.jsonl, got ../a.jsonl",
        ],
    ),
    (
        "recorded elsewhere",
        turn("{reply: {text: a}, recorded: /etc/passwd}"),
        [
            "3:34: turns[0].recorded: must be a path inside the folder of this file, such as name.1.jsonl, got /etc/passwd",
        ],
    ),
    (
        "recorded round about",
        turn("{reply: {text: a}, recorded: a/../../b.jsonl}"),
        [
            "3:34: turns[0].recorded: must be a path inside the folder of this file, such as name.1.jsonl, got a/../../b.jsonl",
        ],
    ),
    (
        "recorded for one",
        turn("{reply: {text: a}, when: {api: chat, recorded: a.jsonl}}"),
        [
            "3:42: turns[0].when: unknown key 'recorded'; it belongs into a turn",
        ],
    ),
    (
        "usage word",
        turn("{reply: {text: a}, usage: nothing}"),
        [
            "3:31: turns[0].usage: must be a mapping with the keys input, output, reasoning, cached, cache_written, or none, got nothing",
        ],
    ),
    (
        "obey unknown",
        turn("{reply: {text: a}, obey: [max_token]}"),
        [
            "3:31: turns[0].obey[0]: must be one of max_tokens, stop, min_tokens, got max_token; did you mean 'max_tokens'?",
        ],
    ),
    (
        "obey twice",
        turn("{reply: {text: a}, obey: [stop, stop]}"),
        ["3:30: turns[0].obey: must name each limit once"],
    ),
    (
        "finish raw",
        turn("{reply: {text: a}, finish_raw: 5}"),
        [
            "3:36: turns[0].finish_raw: must be a string, got 5; put it in quotes to make it one",
        ],
    ),
    (
        "interleaved without order",
        turn("reply: {interleaved: [{text: a}, {text: b}]}"),
        [
            "3:12: turns[0].reply: needs the key 'order'",
        ],
    ),
    (
        "interleaved pause",
        turn("reply: {interleaved: [{text: a}, {pause: 1s}], order: [0]}"),
        [
            "3:38: turns[0].reply.interleaved[1]: must be one of text, reasoning, refusal, tool, server_tool, image, audio, frame, native; found 'pause'",
        ],
    ),
    (
        "neither",
        turn("finish: stop"),
        [
            "3:5: turns[0]: needs a 'reply', or 'http' for an error, or the 'answer' of a route",
        ],
    ),
    (
        "typo of reply",
        turn("repply: {text: hi}"),
        [
            "3:5: turns[0]: unknown key 'repply'; did you mean 'reply'?",
        ],
    ),
    (
        "both",
        turn("{reply: {text: a}, http: 429}"),
        [
            "3:5: turns[0]: must have either 'reply' or 'http', got both",
        ],
    ),
    (
        "finish",
        turn("{reply: {text: a}, finish: tool_call}"),
        [
            "3:32: turns[0].finish: must be one of stop, tool_calls, length, content_filter, refusal, none, got tool_call; did you mean 'tool_calls'?",
        ],
    ),
    (
        "http",
        turn("http: 200"),
        [
            "3:11: turns[0].http: must be a whole number from 400 to 599, got 200",
        ],
    ),
    (
        "http word",
        turn("http: too many"),
        [
            "3:11: turns[0].http: must be a whole number from 400 to 599, got too many",
        ],
    ),
    (
        "http map",
        turn("http: {retry_after: 2s}"),
        [
            "3:11: turns[0].http: needs the key 'status'",
        ],
    ),
    (
        "http header",
        turn('http: {status: 429, headers: {x-a: "b\\r\\nc: d"}}'),
        [
            '3:40: turns[0].http.headers.x-a: must be a header value, in one line, got "b\\r\\nc: d"',
        ],
    ),
    (
        "attempts",
        turn("{reply: {text: a}, attempts: [429]}"),
        [
            "3:35: turns[0].attempts[0]: must be a try, got 429; write {http: 429}",
        ],
    ),
    (
        "attempts retry",
        turn("{reply: {text: a}, attempts: [{http: 429, retry_after: 2}]}"),
        [
            "3:60: turns[0].attempts[0].retry_after: must be a duration such as 300ms, 2s, 500us or 1m, got 2; say the unit",
        ],
    ),
    (
        "timing at",
        turn("{reply: {text: a}, timing: {at: [0, 20]}}"),
        [
            "3:41: turns[0].timing.at[1]: must be a duration such as 300ms, 2s, 500us or 1m, got 20; say the unit",
        ],
    ),
    (
        "line end",
        turn("{reply: {text: a}, wire: {line_end: crfl}}"),
        [
            "3:41: turns[0].wire.line_end: must be one of lf, crlf, cr, got crfl; did you mean 'crlf'?",
        ],
    ),
    (
        "segments",
        turn("{reply: {text: a}, wire: {segments: 0}}"),
        [
            "3:41: turns[0].wire.segments: must be a whole number from 1 to 16777216, got 0",
        ],
    ),
    (
        "segments odd",
        turn("{reply: {text: a}, wire: {segments: {random: [1]}}}"),
        [
            "3:50: turns[0].wire.segments.random: must be two numbers, the smaller one first",
        ],
    ),
    (
        "expect",
        turn("{reply: {text: a}, expect: {errors: [{tool: 0}]}}"),
        [
            "3:42: turns[0].expect.errors[0]: needs the key 'kind'",
        ],
    ),
    (
        "expect opaque",
        turn("{reply: {text: a}, expect: {opaque: c2ln}}"),
        [
            "3:41: turns[0].expect.opaque: must be a list of opaque values, got c2ln",
        ],
    ),
    (
        "expect usage",
        turn("{reply: {text: a}, expect: {usage: some}}"),
        [
            "3:40: turns[0].expect.usage: must be a mapping with the keys input, output, reasoning, cached, cache_written, or none, got some",
        ],
    ),
    (
        "expect reasoning",
        turn("{reply: {text: a}, expect: {reasoning: [a]}}"),
        [
            "3:44: turns[0].expect.reasoning: must be a string, got a list",
        ],
    ),
    (
        "service tier",
        turn("{reply: {text: a}, service_tier: very fast, fingerprint: [a]}"),
        [
            "3:38: turns[0].service_tier: must be a word without spaces, such as flex, got very fast",
            "3:62: turns[0].fingerprint: must be a string, got a list",
        ],
    ),
    (
        "choices",
        turn("{reply: {text: a}, choices: [{text: b}]}"),
        [
            "3:34: turns[0].choices[0]: needs the key 'reply'",
            "3:35: turns[0].choices[0]: unknown key 'text'; it belongs into a part of 'reply', such as '{text: ...}'",
        ],
    ),
    (
        "repeat yes",
        turn("{reply: {text: a}, repeat: yes}"),
        [
            "3:32: turns[0].repeat: must be true or false, got yes",
        ],
    ),
    (
        "repeat a number",
        turn("{reply: {text: a}, repeat: 3}"),
        [
            "3:32: turns[0].repeat: must be true or false; for 3 requests in a row write 'times: 3'",
        ],
    ),
    (
        "times",
        turn("{reply: {text: a}, times: true, when: {api: chat, times: 2}}"),
        [
            "3:31: turns[0].times: must be a whole number from 1 to 10000, got true",
            "3:55: turns[0].when: unknown key 'times'; it belongs into a turn",
        ],
    ),
    (
        "results list",
        two("{request: {results: [c1]}, reply: {text: a}}"),
        [
            "4:25: turns[1].request.results: must be a mapping of tool call ids to results, got a list",
        ],
    ),
    (
        "results null",
        two("{request: {results: {c1: }}, reply: {text: a}}"),
        [
            "4:30: turns[1].request.results.c1: must be a string, or a mapping with one of contains, equals, regex, any, all, not, error, got nothing",
        ],
    ),
    (
        "results op",
        two("{request: {results: {c1: {regexp: a}}}, reply: {text: a}}"),
        [
            "4:31: turns[1].request.results.c1: unknown key 'regexp'; did you mean 'regex'?",
        ],
    ),
    (
        "results any",
        two("{request: {results: {c1: {any: [{error: true}, {regexp: a}, ]}}}, reply: {text: a}}"),
        [
            "4:37: turns[1].request.results.c1.any[0]: 'error' cannot stand inside of 'any', 'all' or 'not'; combine conditions of the whole 'request'",
            "4:53: turns[1].request.results.c1.any[1]: unknown key 'regexp'; did you mean 'regex'?",
        ],
    ),
    (
        "request groups",
        turn("{request: {any: [{}], not: {offer: [a]}}, reply: {text: a}}"),
        [
            "3:22: turns[0].request.any[0]: must have a condition",
            "3:33: turns[0].request.not: unknown key 'offer'; did you mean 'offers'?",
        ],
    ),
    (
        "results error",
        two("{request: {results: {c1: {error: false}}}, reply: {text: a}}"),
        [
            "4:30: turns[1].request.results.c1: must be {error: true}; to take any result, leave the call out",
        ],
    ),
    (
        "request",
        turn("{request: {result: {c1: x}}, reply: {text: a}}"),
        [
            "3:16: turns[0].request: unknown key 'result'; did you mean 'results'?",
        ],
    ),
    (
        "when api",
        turn("{reply: {text: a}, when: {finish: length}}"),
        [
            "3:30: turns[0].when: needs 'api', or a condition: results, offers, tool_choice, user, user_files, system, body, schema, any, all, not",
        ],
    ),
    (
        "when typo",
        turn("{reply: {text: a}, when: {api: gemni, finish: length}}"),
        [
            f"3:36: turns[0].when.api: must be one of {APIS}, got gemni; did you mean 'gemini'?",
        ],
    ),
    (
        "when nothing",
        turn("{reply: {text: a}, when: {api: chat}}"),
        [
            "3:30: turns[0].when: changes nothing about its turn",
        ],
    ),
    (
        "extra list",
        turn("{reply: {text: a}, extra: [1]}"),
        [
            "3:31: turns[0].extra: must be a mapping of APIs to their fields, got a list",
        ],
    ),
    (
        "extra empty",
        turn("{reply: {text: a}, extra: {}}"),
        [
            "3:31: turns[0].extra: must be a mapping of APIs to their fields, got an empty one",
        ],
    ),
    (
        "extra api",
        turn("{reply: {text: a}, extra: {chatt: {event: {a: 1}}}}"),
        [
            "3:32: turns[0].extra: unknown key 'chatt'; did you mean 'chat'?",
        ],
    ),
    (
        "extra place",
        turn("{reply: {text: a}, extra: {chat: {events: {a: 1}}}}"),
        [
            "3:39: turns[0].extra.chat: 'events' is no place of chat, which has event, choice, message, call, usage, reasoning; did you mean 'event'?",
        ],
    ),
    (
        "cached",
        turn("{reply: {text: a}, usage: {cached: some}}"),
        [
            "3:40: turns[0].usage.cached: must be prefix, got some",
        ],
    ),
    (
        "extra item",
        turn("{reply: {text: a}, extra: {responses: {item: {a: 1}}, anthropic: {item: {a: 1}}}}"),
        [
            "3:44: turns[0].extra.responses: 'item' is no place of responses, which has event, response, call, message, usage; there it is 'message'",
            "3:71: turns[0].extra.anthropic: 'item' is no place of anthropic, which has event, message, call, text, finish, end, usage; there it is 'text'",
        ],
    ),
    (
        "extra nothing",
        turn("{reply: {text: a}, extra: {chat: {}, agui: {event: {}}, gemini: {usage: 1}}}"),
        [
            "3:38: turns[0].extra.chat: must be a mapping of places to fields; chat has event, choice, message, call, usage, reasoning",
            "3:56: turns[0].extra.agui.event: must be a mapping of fields to their values, got an empty one",
            "3:77: turns[0].extra.gemini.usage: must be a mapping of fields to their values, got 1",
        ],
    ),
    *(
        (
            f"{key} out of place",
            turn(f"{{reply: x, {key}: y}}"),
            [f"3:16: turns[0]: unknown key '{key}'; {where}"],
        )
        for key, where in [
            ("ttft", "it belongs into 'timing' of the turn, or 'defaults' of the scenario"),
            ("delay", "write 'timing: {ttft: 2s}' in the turn, or '{pause: 2s}' between parts"),
            ("content", "the text of a reply is 'reply: TEXT', or a part '{text: TEXT}'"),
            ("tool_calls", "a call is a part of 'reply': '{tool: NAME, arguments: {...}}'"),
        ]
    ),
    (
        "retry_after of a reply",
        turn("{reply: x, retry_after: 2s}"),
        ["3:16: turns[0]: 'retry_after' is part of an error, and goes with 'http'"],
    ),
]
