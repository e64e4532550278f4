# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Documents with a wrong shape in the parts of a reply, with all their problems."""

from __future__ import annotations

from tests.scenario.documents import Row, part, top, turn

PARTS: list[Row] = [
    (
        "no part",
        turn("reply: []"),
        [
            "3:12: turns[0].reply: must have at least one part",
        ],
    ),
    (
        "part text",
        turn("reply: 42"),
        [
            "3:12: turns[0].reply: must be a text, a part or a list of parts, got 42; put a text in quotes",
        ],
    ),
    (
        "part list",
        turn("reply: [42]"),
        [
            "3:13: turns[0].reply[0]: must be a part: a mapping with one of text, reasoning, refusal, tool, shell, write, read, edit, server_tool, image, audio, parallel, interleaved, pause, gate, frame, native, error, auto, use, got 42",
        ],
    ),
    (
        "part none",
        part("split: words"),
        [
            "3:13: turns[0].reply: unknown key 'split'; it belongs into 'defaults' of the scenario, or a part of 'reply', such as '{text: ..., split: ...}'",
        ],
    ),
    (
        "part empty",
        turn("reply: [{}]"),
        [
            "3:13: turns[0].reply[0]: must be a part, with one of text, reasoning, refusal, tool, shell, write, read, edit, server_tool, image, audio, parallel, interleaved, pause, gate, frame, native, error, auto, use; found no keys; a text with { needs quotes",
        ],
    ),
    (
        "part typo",
        part("txt: hi"),
        [
            "3:13: turns[0].reply: unknown key 'txt'; did you mean 'text'?",
        ],
    ),
    (
        "part two",
        part("text: hi, tool: f"),
        [
            "3:12: turns[0].reply: must be one part, got text and tool together; make it a list",
        ],
    ),
    (
        "part key",
        part("text: hi, splitt: words"),
        [
            "3:23: turns[0].reply: unknown key 'splitt'; did you mean 'split'?",
        ],
    ),
    (
        "text number",
        turn("reply:\n      - text: hi\n      - text: 5"),
        [
            "5:15: turns[0].reply[1].text: must be a string, got 5; put it in quotes to make it one",
        ],
    ),
    (
        "text null",
        part("text: "),
        [
            "3:19: turns[0].reply.text: must be a string, got nothing",
        ],
    ),
    (
        "text list",
        part("text: [a]"),
        [
            "3:19: turns[0].reply.text: must be a string, got a list",
        ],
    ),
    (
        "split word",
        part("text: hi, split: word"),
        [
            "3:30: turns[0].reply.split: must be whole, chars, words, a number of characters, {random: [1, 8]} or the fragments, got word; did you mean 'words'?",
        ],
    ),
    (
        "split zero",
        part("text: hi, split: 0"),
        [
            "3:30: turns[0].reply.split: must be whole, chars, words, a number of characters, {random: [1, 8]} or the fragments, got 0",
        ],
    ),
    (
        "split randm",
        part("text: hi, split: {randm: [1, 8]}"),
        [
            "3:31: turns[0].reply.split: unknown key 'randm'; did you mean 'random'?",
        ],
    ),
    (
        "split empty",
        part("text: hi, split: []"),
        [
            "3:30: turns[0].reply.split: must be a list of strings, got an empty one",
        ],
    ),
    (
        "logprobs",
        part("text: hi, logprobs: 1"),
        [
            "3:33: turns[0].reply.logprobs: must be true, false or a list of tokens, got 1",
        ],
    ),
    (
        "citation",
        part("text: hi, citations: [{title: x}]"),
        [
            "3:35: turns[0].reply.citations[0]: needs the key 'url', or 'document' or 'search_result'",
        ],
    ),
    (
        "call name",
        part("tool: get weather"),
        [
            "3:19: turns[0].reply.tool: must be a tool name: 1 to 64 letters, digits, '_' or '-', or SERVER.TOOL for a tool of an MCP server, got get weather",
        ],
    ),
    (
        "call arguments",
        part("tool: f, arguments: [1]"),
        [
            "3:33: turns[0].reply.arguments: must be a mapping, or a string of JSON, got a list",
        ],
    ),
    (
        "call arguments number",
        part("tool: f, arguments: 5"),
        [
            "3:33: turns[0].reply.arguments: must be a mapping, or a string of JSON, got 5",
        ],
    ),
    (
        "parallel text",
        part("parallel: [{tool: f}, {text: hi}]"),
        [
            "3:35: turns[0].reply.parallel[1]: must be a tool call, with the key 'tool'; found 'text'",
        ],
    ),
    (
        "parallel key",
        part("parallel: [{tool: f, size: 1}]"),
        [
            "3:34: turns[0].reply.parallel[0]: unknown key 'size'; known here: tool, id, arguments, input, signature, malformed, refused, split, every",
        ],
    ),
    (
        "parallel one",
        part("parallel: {tool: f}"),
        [
            "3:23: turns[0].reply.parallel: must be a list of tool calls, got a mapping",
        ],
    ),
    (
        "order word",
        part("parallel: [{tool: f}], order: [a]"),
        [
            "3:44: turns[0].reply.order[0]: must be a whole number from 0 up, got a",
        ],
    ),
    (
        "gate",
        part("gate: {name: a b, limit: 0}"),
        [
            "3:26: turns[0].reply.gate.name: must be the name of a gate: letters, digits, '-' and '_', such as thinking, got a b",
        ],
    ),
    (
        "pause",
        part("pause: 300"),
        [
            "3:20: turns[0].reply.pause: must be a duration such as 300ms, 2s, 500us or 1m, got 300; say the unit",
        ],
    ),
    (
        "frame api",
        part("frame: {data: x}"),
        [
            "3:12: turns[0].reply: needs the key 'api'",
        ],
    ),
    (
        "frame",
        part("frame: {}, api: chat"),
        [
            "3:20: turns[0].reply.frame: must have one of data (with event, id, retry), comment and raw",
        ],
    ),
    (
        "native api",
        part("native: {type: STATE_SNAPSHOT, snapshot: 1}"),
        [
            "3:12: turns[0].reply: needs the key 'api'",
        ],
    ),
    (
        "native without a type",
        part("native: {delta: []}, api: agui"),
        [
            "3:21: turns[0].reply.native: needs the key 'type', one of STATE_SNAPSHOT, STATE_DELTA, STEP_STARTED, STEP_FINISHED, ACTIVITY_SNAPSHOT, ACTIVITY_DELTA, CUSTOM, RAW, MESSAGES_SNAPSHOT, TOOL_CALL_RESULT, SUBAGENT_STARTED, SUBAGENT_FINISHED, SUBAGENT_ERROR, RUN_FINISHED",
        ],
    ),
    (
        "frame two",
        part("frame: {raw: x, comment: y}, api: chat"),
        [
            "3:20: turns[0].reply.frame: must have one of data (with event, id, retry), comment and raw",
        ],
    ),
    (
        "frame null",
        part("frame: {data: null}, api: chat"),
        [
            "3:27: turns[0].reply.frame.data: must be a string or a JSON value; write null as the string 'null'",
        ],
    ),
    (
        "frame event",
        part('frame: {data: x, event: "a\\nb"}, api: chat'),
        [
            '3:37: turns[0].reply.frame.event: must be a string in one line, got "a\\nb"',
        ],
    ),
    (
        "error key",
        part("error: {massage: x}"),
        [
            "3:21: turns[0].reply.error: unknown key 'massage'; did you mean 'message'?",
        ],
    ),
    (
        "auto false",
        part("auto: false"),
        [
            "3:19: turns[0].reply.auto: must be true, or a mapping with the key tokens, got false",
        ],
    ),
    (
        "auto without a length",
        part("auto: {}"),
        ["3:19: turns[0].reply.auto: needs the key 'tokens'"],
    ),
    (
        "auto of a list",
        part("auto: {tokens: [1]}"),
        [
            "3:28: turns[0].reply.auto.tokens: must be a number of tokens, or a distribution of them, got a list",
        ],
    ),
    (
        "server tool null",
        part("server_tool: web_search, output: null"),
        [
            "3:46: turns[0].reply.output: must be a JSON value, or {raw: text}, got null",
        ],
    ),
    (
        "server tool key",
        part("server_tool: web_search, arguments: {}"),
        [
            "3:38: turns[0].reply: unknown key 'arguments'; known here: server_tool, id, name, input, output, split, every",
        ],
    ),
    (
        "use and text",
        "scenario: a\nreplies: {a: {text: c}}\nturns: [{reply: {use: a, text: b}}]\n",
        [
            "3:26: turns[0].reply: unknown key 'text'; known here: use",
        ],
    ),
    (
        "use in a group",
        part("parallel: [{use: a}]"),
        [
            "3:24: turns[0].reply.parallel[0]: must be a tool call, with the key 'tool'; found 'use'",
        ],
    ),
    (
        "use among interleaved parts",
        part("interleaved: [{use: a}], order: [0]"),
        [
            "3:27: turns[0].reply.interleaved[0]: must be one of text, reasoning, refusal, tool, server_tool, image, audio, frame, native; found 'use'",
        ],
    ),
    (
        "use in a named reply",
        top("replies: {a: {text: b}, c: [{use: a}]}"),
        [
            "2:35: replies.c[0].use: stands in a named reply, which cannot use another; write its parts",
        ],
    ),
    (
        "no named replies",
        top("replies: {}"),
        [
            "2:10: replies: must be a mapping of names, got an empty one",
        ],
    ),
    (
        "name of a reply",
        top("replies: {a b: {text: c}}"),
        [
            "2:11: replies: must have names of letters, digits, '_' and '-', got 'a b'",
        ],
    ),
    (
        "include elsewhere",
        top("include: [sub/b.yaml, ../c.yaml, d.yaml, d.yaml]"),
        [
            "2:11: include[0]: must be the name of a file in the folder of this one, such as common.yaml, got sub/b.yaml",
            "2:23: include[1]: must be the name of a file in the folder of this one, such as common.yaml, got ../c.yaml",
            "2:42: include[3]: 'd.yaml' is included twice",
        ],
    ),
    (
        "tool input",
        part("tool: run, arguments: {a: 1}, input: print(1)"),
        [
            "3:43: turns[0].reply: must have either 'arguments' or 'input', got both",
        ],
    ),
    (
        "image without bytes",
        part("image: {type: image/png}"),
        [
            "3:20: turns[0].reply.image: must have either 'file' or 'base64', got none",
        ],
    ),
    (
        "image with both",
        part("image: {file: a.png, base64: AAAA, type: image/png}"),
        [
            "3:20: turns[0].reply.image: must have either 'file' or 'base64', got file and base64",
        ],
    ),
    (
        "image without a type",
        part("image: {base64: AAAA}"),
        [
            "3:20: turns[0].reply.image: needs the key 'type', such as image/png",
        ],
    ),
    (
        "image of another type",
        part("image: {base64: AAAA, type: audio/wav}"),
        [
            "3:41: turns[0].reply.image.type: must be a media type such as image/png, got audio/wav",
        ],
    ),
    (
        "image that is no base64",
        part("image: {base64: AAA, type: image/png}"),
        [
            "3:29: turns[0].reply.image.base64: must be base64 text, got AAA",
        ],
    ),
    (
        "sound outside of the folder",
        part("audio: {file: ../a.wav}"),
        [
            "3:27: turns[0].reply.audio.file: must be a path inside the folder of this file, such as name.1.jsonl, got ../a.wav",
        ],
    ),
    (
        "image key",
        part("image: {base64: AAAA, type: image/png}, split: words"),
        [
            "3:53: turns[0].reply: unknown key 'split'; known here: image, signature, every",
        ],
    ),
    (
        "sound without bytes in a fragment",
        part("audio: {base64: AAAA, type: audio/wav}, fragment_bytes: 0"),
        [
            "3:69: turns[0].reply.fragment_bytes: must be a whole number from 1 to 8388608, got 0",
        ],
    ),
    (
        "citation with two sources",
        part("text: hi, citations: [{document: 0, search_result: 0, blocks: [0, 1]}]"),
        [
            "3:35: turns[0].reply.citations[0]: must have either 'document' or 'search_result', got both",
        ],
    ),
    (
        "citation without a place",
        part("text: hi, citations: [{document: 0, title: Report}]"),
        [
            "3:35: turns[0].reply.citations[0]: needs one of characters, pages, blocks, which say where in the document",
        ],
    ),
    (
        "citation with two places",
        part("text: hi, citations: [{document: 0, pages: [1, 2], blocks: [0, 1]}]"),
        [
            "3:35: turns[0].reply.citations[0]: needs one of characters, pages, blocks, which say where in the document",
        ],
    ),
    (
        "citation of no document",
        part("text: hi, citations: [{url: u, pages: [1, 2]}]"),
        [
            "3:35: turns[0].reply.citations[0]: has 'pages' of no document; needs the key 'document'",
        ],
    ),
    (
        "citation of a page of a result",
        part("text: hi, citations: [{search_result: 0, pages: [1, 2]}]"),
        [
            "3:35: turns[0].reply.citations[0]: needs 'blocks', which say where in the search result, and no other place",
        ],
    ),
    (
        "token without a probability",
        part("text: Hi, logprobs: [{token: Hi}]"),
        [
            "3:34: turns[0].reply.logprobs[0]: needs the key 'logprob'",
        ],
    ),
    (
        "token with a positive one",
        part("text: Hi, logprobs: [{token: Hi, logprob: 0.5}]"),
        [
            "3:55: turns[0].reply.logprobs[0].logprob: must be a number of at most 0, got 0.5",
        ],
    ),
    (
        "likely token of a likely token",
        part(
            "text: Hi, logprobs: [{token: Hi, logprob: -1, top: [{token: Hi, logprob: -1, top: []}]}]"
        ),
        [
            "3:90: turns[0].reply.logprobs[0].top[0]: unknown key 'top'; known here: token, logprob",
        ],
    ),
    (
        "no tokens",
        part("text: Hi, logprobs: []"),
        [
            "3:33: turns[0].reply.logprobs: must be a list of tokens, got an empty one",
        ],
    ),
]
