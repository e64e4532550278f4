# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Documents of the right shape whose values contradict each other, or which no version can play
yet, with all their problems."""

from __future__ import annotations

from tests.scenario.documents import Row, part, tools, top, turn, two

OPERATOR = (
    "is compared as JSON, so '{}' is no operator here: only conditions on texts have operators, as "
    "user, system and headers are; a JSON Schema in a turn's `request: {{schema: ...}}` can demand a "
    "pattern, or this very object"
)

SEMANTICS: list[Row] = [
    (
        "match ignore alone",
        top("match: {ignore: [uuid]}"),
        [
            "2:8: match: must have a condition; 'any' answers whatever nothing else does",
        ],
    ),
    (
        "latency key",
        top("defaults: {latency: ttf=1s}"),
        [
            "2:21: defaults.latency: there is no 'ttf'; did you mean 'ttft'? There are: ttft, itl, "
            "prefill, load-factor, from",
        ],
    ),
    (
        "latency samples",
        turn("{reply: {text: a}, timing: {latency: ttft=samples(a.txt)}}"),
        [
            "3:42: turns[0].timing.latency: ttft: names the file 'a.txt', and this text is in no folder",
        ],
    ),
    (
        "latency and exact times",
        turn("{reply: {text: a}, timing: {latency: itl=1s, ttft: 1s, at: [1s]}}"),
        [
            "3:50: turns[0].timing: 'latency' draws all times, and 'ttft' says one; keep one of them",
            "3:60: turns[0].timing: 'latency' draws all times, and 'at' says one; keep one of them",
        ],
    ),
    (
        "default latency and exact times",
        top("defaults: {every: 1s, latency: itl=1s}"),
        [
            "2:12: defaults: 'latency' draws all times, and 'every' says one; keep one of them",
        ],
    ),
    (
        "tokens that are not the text",
        part("text: Hello, logprobs: [{token: Hel, logprob: -1}, {token: la, logprob: 0}]"),
        [
            "3:64: turns[0].reply.logprobs[1]: the tokens do not join to the text: from character 5 they give 'a' instead of 'o'",
        ],
    ),
    (
        "citation backwards",
        part("text: hi, citations: [{document: 0, pages: [2, 1]}]"),
        [
            "3:56: turns[0].reply.citations[0].pages: must be two numbers, the smaller one first",
        ],
    ),
    (
        "regex",
        top("match: {user: {regex: 'a('}}"),
        [
            "2:23: match.user.regex: must be a regular expression of Python; missing ), unterminated subpattern at position 1",
        ],
    ),
    (
        "glob",
        top("match: {model: 'gpt-[4'}"),
        [
            "2:16: match.model: must be a pattern such as gpt-4*, got \"gpt-[4\"; its '[' is never closed",
        ],
    ),
    (
        "regex in any",
        top("match: {user: {any: [a, {not: {regex: 'a('}}]}}"),
        [
            "2:39: match.user.any[1].not.regex: must be a regular expression of Python; missing ), unterminated subpattern at position 1",
        ],
    ),
    (
        "operator in body",
        top("match: {body: {a: [{regex: x}], b: {contains: x, c: 1}}, not: {body: {equals: x}}}"),
        [
            f"2:20: match.body.a[0]: {OPERATOR.format('regex')}",
            f"2:70: match.not.body: {OPERATOR.format('equals')}",
        ],
    ),
    (
        "operator in a request's body",
        turn("{request: {any: [{body: {a: {contains: x}}}]}, reply: {text: a}}"),
        [
            f"3:33: turns[0].request.any[0].body.a: {OPERATOR.format('contains')}",
        ],
    ),
    (
        "result in any",
        two("{request: {not: {results: {c9: a, 7: b}}}, reply: {text: a}}"),
        [
            "4:36: turns[1].request.not.results.c9: is the result of no call in the turns before; known: c1, c2",
            "4:42: turns[1].request.not.results.7: is the result of no call: the turn before this one makes 2 calls, at positions 0 to 1",
        ],
    ),
    (
        "place of another API",
        turn("{extra: {responses: {choice: {a: 1}}}, reply: {text: a}}"),
        [
            "3:26: turns[0].extra.responses: 'choice' is no place of responses, which has event, response, call, message, usage",
        ],
    ),
    (
        "places in the words of another API",
        turn(
            "{reply: {text: a}, extra: {gemini: {choice: {a: 1}, message: {a: 1}},"
            " bedrock: {message: {a: 1}}}}"
        ),
        [
            "3:41: turns[0].extra.gemini: 'choice' is no place of gemini, which has event, candidate, content, call, usage; there it is 'candidate'",
            "3:57: turns[0].extra.gemini: 'message' is no place of gemini, which has event, candidate, content, call, usage; there it is 'content'",
            "3:85: turns[0].extra.bedrock: 'message' is no place of bedrock, which has event, metadata, call, finish, usage; there it is 'metadata'",
        ],
    ),
    (
        "prefix elsewhere",
        turn(
            "{reply: {text: a}, attempts: [{usage: {cached: prefix}, reply: {text: b}}],"
            " expect: {usage: {cached: prefix}}}"
        ),
        [
            "3:52: turns[0].attempts[0].usage.cached: must be a number: 'prefix' is for turns alone, which are not recorded",
            "3:106: turns[0].expect.usage.cached: must be a number: 'prefix' is for turns alone, which are not recorded",
        ],
    ),
    (
        "late first frame",
        turn("{reply: [{text: a}, {frame: {comment: x}, api: chat, first: true}]}"),
        [
            "3:65: turns[0].reply[1].first: belongs to the frames at the beginning of a reply",
        ],
    ),
    (
        "schema in any",
        turn("{request: {any: [{schema: {type: objct}}]}, reply: {text: a}}"),
        [
            "3:38: turns[0].request.any[0].schema.type: is not a JSON Schema: 'objct' is not valid under any of the given schemas",
        ],
    ),
    (
        "headers twice",
        top("match: {headers: {X-A: x, x-a: y}}"),
        [
            "2:27: match.headers: header 'x-a' is there twice; upper and lower case are the same",
        ],
    ),
    (
        "tool twice",
        top("tools: [{name: f}, {name: f}]"),
        [
            "2:27: tools[1].name: tool 'f' is there twice",
        ],
    ),
    (
        "schema",
        top("tools: [{name: f, parameters: {type: objct}}]"),
        [
            "2:38: tools[0].parameters.type: is not a JSON Schema: 'objct' is not valid under any of the given schemas",
        ],
    ),
    (
        "schema pattern",
        top("tools: [{name: f, parameters: {pattern: '('}}]"),
        [
            "2:41: tools[0].parameters.pattern: is not a JSON Schema: '(' must be a regular "
            "expression of Python; missing ), unterminated subpattern at position 0",
        ],
    ),
    (
        "attempts twice",
        turn(
            "{reply: {text: a}, attempts: [{http: {status: 429, retry_after: 1s}, retry_after: 2s}]}"
        ),
        [
            "3:74: turns[0].attempts[0]: 'retry_after' is written twice, here and under 'http'",
        ],
    ),
    (
        "segments order",
        turn("{reply: {text: a}, wire: {segments: {random: [9, 1]}}}"),
        [
            "3:50: turns[0].wire.segments.random: must be two numbers, the smaller one first",
        ],
    ),
    (
        "quirks",
        turn("{reply: {text: a}, wire: {quirks: [sse-clrf]}}"),
        [
            "3:40: turns[0].wire.quirks[0]: there is no quirk 'sse-clrf'; did you mean 'sse-crlf' or 'sse-cut'?",
        ],
    ),
    (
        "fault",
        turn("{reply: {text: a}, fault: {cut: {after: 50 events}}}"),
        [
            "3:31: turns[0].fault: cannot strike: over chat, cut:after=50 events: nothing is after 50 events: the answer has 1458 bytes and 5 events",
        ],
    ),
    (
        "fault of a try",
        turn(
            "{reply: {text: a}, attempts: [{reply: {text: b}, fault: {error: {inside: call_1 arguments}}}]}"
        ),
        [
            "3:61: turns[0].attempts[0].fault: cannot strike: over chat, error:inside=call_1 arguments: nothing is inside call_1 arguments: the answer has 1458 bytes and 5 events",
        ],
    ),
    (
        "interleaved order",
        part(
            "interleaved: [{text: ab, split: chars}, {tool: f, id: c, arguments: {a: 1}}], "
            "order: [0, 1, 0]"
        ),
        [
            "3:98: turns[0].reply.order: part 1 has 2 fragments and must be there as often, got 1",
        ],
    ),
    (
        "interleaved stranger",
        part("interleaved: [{text: ab}, {text: cd}], order: [0, 1, 2]"),
        [
            "3:66: turns[0].reply.order[2]: must be the number of a part, from 0 to 1, got 2",
        ],
    ),
    (
        "interleaved at random",
        part("interleaved: [{text: ab, split: {random: [1, 2]}}, {text: cd}], order: [0, 1]"),
        [
            "3:84: turns[0].reply.order: part 0 is split at random, so its fragments cannot be put in order",
        ],
    ),
    (
        "interleaved join",
        part("interleaved: [{text: ab, split: [a, c]}, {text: cd}], order: [0, 1, 0]"),
        [
            "3:49: turns[0].reply.interleaved[0].split[1]: the fragments do not join to the text: from character 2 they give 'c' instead of 'b'",
        ],
    ),
    (
        "repeat",
        "scenario: a\nturns:\n  - {reply: {text: a}, repeat: true}\n  - {reply: {text: b}}\n",
        [
            "3:32: turns[0].repeat: only the last turn can repeat without end; take 'times'",
        ],
    ),
    (
        "repeat restart",
        "scenario: a\nturns:\n  - {reply: {text: a}, repeat: true}\nthen: restart\n",
        [
            "3:32: turns[0].repeat: cannot go with 'then: restart'; take one of them",
        ],
    ),
    (
        "results typo",
        two("{request: {results: {c3: x, zzzz: y}}, reply: {text: a}}"),
        [
            "4:30: turns[1].request.results.c3: is the result of no call in the turns before; known: c1, c2",
            "4:39: turns[1].request.results.zzzz: is the result of no call in the turns before; known: c1, c2",
        ],
    ),
    (
        "results by position",
        two("{request: {results: {0: x, 1: y, 2: z, 01: w}}, reply: {text: a}}"),
        [
            "4:41: turns[1].request.results.2: is the result of no call: the turn before this one makes 2 calls, at positions 0 to 1",
            "4:48: turns[1].request.results.01: is the result of no call in the turns before; known: c1, c2",
        ],
    ),
    (
        "results early",
        turn("{request: {results: {c1: x}}, reply: {text: a}}"),
        [
            "3:30: turns[0].request.results.c1: is the result of no call; no turn before this one calls a tool",
        ],
    ),
    (
        "request schema",
        turn("{request: {schema: {type: 5}}, reply: {text: a}}"),
        [
            "3:31: turns[0].request.schema.type: is not a JSON Schema: 5 is not valid under any of the given schemas",
        ],
    ),
    (
        "when twice",
        turn("{reply: {text: a}, when: [{api: chat, finish: stop}, {api: chat, finish: length}]}"),
        [
            "3:58: turns[0].when[1]: is the second for 'chat'; make one of the two",
        ],
    ),
    (
        "when same",
        turn("{http: 429, when: {api: chat, reply: null}}"),
        [
            "3:23: turns[0].when: changes nothing about its turn",
        ],
    ),
    (
        "when gone",
        turn("{reply: {text: a}, when: {api: chat, reply: null}}"),
        [
            "3:30: turns[0].when: takes the reply away; put another, or 'http', in its place",
        ],
    ),
    (
        "when both",
        turn("{reply: {text: a}, when: {api: chat, reply: {text: b}, http: 500}}"),
        [
            "3:30: turns[0].when: must have either 'reply' or 'http', got both",
        ],
    ),
    (
        "when foreign",
        "scenario: a\napis: [chat]\nturns:\n  - {reply: {text: a}, when: {api: agui, finish: stop}}\n",
        [
            "4:36: turns[0].when.api: agui is not among the scenario's apis: chat",
        ],
    ),
    (
        "when path",
        turn("{reply: {text: a}, when: [{api: chat, reply: [{text: b, split: [c]}]}]}"),
        [
            "3:69: turns[0].when[0].reply[0].split[0]: the fragments do not join to the text: from character 1 they give 'c' instead of 'b'",
        ],
    ),
    (
        "join",
        part("text: Hello, split: [Hel, lo!]"),
        [
            "3:39: turns[0].reply.split[1]: the fragments do not join to the text: from character 6 they give '!' instead of nothing more",
        ],
    ),
    (
        "join middle",
        part("reasoning: Hello, split: [Hel, o]"),
        [
            "3:44: turns[0].reply.split[1]: the fragments do not join to the text: from character 4 they give 'o' instead of 'lo'",
        ],
    ),
    (
        "join short",
        part("refusal: Hello, split: [Hel, l]"),
        [
            "3:36: turns[0].reply.split: the fragments do not join to the text: from character 5 they give nothing more instead of 'o'",
        ],
    ),
    (
        "join arguments",
        part("tool: f, arguments: {a: 1}, split: ['{\"a\": ', '1}']"),
        [
            "3:49: turns[0].reply.split[0]: the fragments do not join to the arguments: from character 6 they give ' 1}' instead of '1}'",
        ],
    ),
    (
        "join nothing",
        part("tool: f, split: ['{}']"),
        [
            "3:30: turns[0].reply.split[0]: the fragments do not join to the arguments: from character 1 they give '{}' instead of nothing more",
        ],
    ),
    (
        "json",
        part("tool: f, arguments: '{\"a\": '"),
        [
            "3:33: turns[0].reply.arguments: must be JSON, or the call be marked 'malformed: true'; expecting value at character 7",
        ],
    ),
    (
        "json list",
        part("tool: f, arguments: '[1]'"),
        [
            "3:33: turns[0].reply.arguments: must be a JSON object, or the call be marked 'malformed: true'",
        ],
    ),
    (
        "json nan",
        part("tool: f, arguments: '{\"a\": NaN}'"),
        [
            "3:33: turns[0].reply.arguments: must be JSON, or the call be marked 'malformed: true'; NaN is not JSON",
        ],
    ),
    (
        "unknown tool",
        tools("tool: ad, arguments: {n: 1}"),
        [
            "6:19: turns[0].reply.tool: 'ad' is not among the scenario's tools; did you mean 'add'?",
        ],
    ),
    (
        "gates",
        turn(
            "{reply: [{gate: a}, {text: x}, {gate: b}, {gate: b}], gate: a, choices: "
            "[{reply: {gate: c}}]}"
        ),
        [
            "3:21: turns[0].reply[0].gate: 'a' is open by then: this answer waited there; take another name",
            "3:54: turns[0].reply[3].gate: 'b' is open by then: this answer waited there; take another name",
            "3:86: turns[0].choices[0].reply: belongs into the reply of the turn; a choice has only content",
        ],
    ),
    (
        "gate without time",
        part("gate: {name: a, limit: 0}"),
        [
            "3:36: turns[0].reply.gate.limit: must be longer than 0; the answer would not wait",
        ],
    ),
    (
        "gate in a recording",
        turn("{reply: [{text: x}, {gate: a}], recorded: {file: a.1.jsonl}}"),
        [
            "3:32: turns[0].reply[1].gate: has no place in a recording, which is sent as it was; make it 'gate' of the turn, or remove 'recorded'",
        ],
    ),
    (
        "gate of a try",
        turn("{reply: x, attempts: [{reply: [{gate: a}, {gate: a}]}]}"),
        [
            "3:54: turns[0].attempts[0].reply[1].gate: 'a' is open by then: this answer waited there; take another name",
        ],
    ),
    (
        "choices",
        turn(
            "{reply: {text: a}, choices: [{reply: {error: {message: no}}}, "
            "{reply: [{text: ab, split: [a, c]}, {auto: true}]}]}"
        ),
        [
            "3:42: turns[0].choices[0].reply: belongs into the reply of the turn; a choice has only content",
            "3:98: turns[0].choices[1].reply[0].split[1]: the fragments do not join to the text: from character 2 they give 'c' instead of 'b'",
            "3:103: turns[0].choices[1].reply[1]: belongs into the reply of the turn; a choice has only content",
        ],
    ),
    (
        "unknown tool far",
        tools("tool: multiply"),
        [
            "6:19: turns[0].reply.tool: 'multiply' is not among the scenario's tools; they are add",
        ],
    ),
    (
        "violation",
        tools("tool: add, arguments: {n: one}"),
        [
            "6:39: turns[0].reply.arguments.n: does not fit the parameters of add: 'one' is not of type 'integer'",
        ],
    ),
    (
        "violation missing",
        tools("tool: add"),
        [
            "6:12: turns[0].reply: does not fit the parameters of add: 'n' is a required property",
        ],
    ),
    (
        "violation string",
        tools('tool: add, arguments: \'{"n": "one"}\''),
        [
            "6:35: turns[0].reply.arguments.n: does not fit the parameters of add: 'one' is not of type 'integer'",
        ],
    ),
    (
        "ids",
        two("reply: {tool: f, id: c1}"),
        [
            "4:26: turns[1].reply.id: call id 'c1' is taken by an earlier call",
        ],
    ),
    (
        "order",
        part(
            "parallel: [{tool: f, arguments: {a: 1}, split: 4}, {tool: f, arguments: {}}], order: [0, 1]"
        ),
        [
            "3:98: turns[0].reply.order: call 0 has 2 fragments and must be there as often, got 1",
            "3:98: turns[0].reply.order: call 1 has 0 fragments and must be there as often, got 1",
        ],
    ),
    (
        "order stranger",
        part("parallel: [{tool: f, arguments: {a: 1}}], order: [1]"),
        [
            "3:63: turns[0].reply.order[0]: must be the number of a call, from 0 to 0, got 1",
        ],
    ),
    (
        "order random",
        part("parallel: [{tool: f, arguments: {a: 1}, split: {random: [1, 2]}}], order: [0]"),
        [
            "3:87: turns[0].reply.order: call 0 is split at random, so its fragments cannot be put in order",
        ],
    ),
    (
        "native of an API without any",
        part("native: {type: STATE_SNAPSHOT, snapshot: 1}, api: chat"),
        [
            "3:21: turns[0].reply.native: is a part that OpenAI Chat Completions does not have; send an event as it is with 'frame'",
        ],
    ),
    (
        "native key",
        part("native: {type: STEP_STARTED, stepname: 5}, api: agui"),
        [
            "3:21: turns[0].reply.native: needs the key 'stepName'",
            "3:52: turns[0].reply.native.stepname: unknown key 'stepname'; did you mean 'stepName'?",
        ],
    ),
    (
        "native values",
        part(
            "native: {type: STATE_DELTA, delta: [{op: ad}, {op: add, path: x, value: 1}]}, api: agui"
        ),
        [
            "3:54: turns[0].reply.native.delta[0].op: must be one of add, remove, replace, move, copy, test, got \"ad\"; did you mean 'add'?",
            "3:75: turns[0].reply.native.delta[1].path: must be a JSON Pointer, which begins with '/', got 'x'",
        ],
    ),
    (
        "native end of a run",
        part("native: {type: RUN_FINISHED, outcome: {type: interrupt, interrupts: []}}, api: agui"),
        [
            "3:81: turns[0].reply.native.outcome.interrupts: must not be empty",
        ],
    ),
    (
        "native usual end of a run",
        part("native: {type: RUN_FINISHED}, api: agui"),
        [
            "3:21: turns[0].reply.native: needs the key 'outcome' or 'result'; the usual end of a run is sent by itself",
        ],
    ),
    (
        "native file",
        part("native: {file: a.txt}, api: agui"),
        [
            "3:28: turns[0].reply.native.file: names the file 'a.txt', and this text is in no folder",
        ],
    ),
    (
        "frame foreign",
        "scenario: a\napis: [chat]\nturns:\n  - reply: {frame: {data: x}, api: agui}\n",
        [
            "4:36: turns[0].reply.api: agui is not among the scenario's apis: chat",
        ],
    ),
    (
        "error last",
        turn("reply: [{error: {message: x}}, {text: hi}]"),
        [
            "3:13: turns[0].reply[0]: must be the last part; an error ends the stream",
        ],
    ),
    (
        "stop sequence and another finish",
        turn("{reply: {text: a}, finish: length, stop_sequence: END}"),
        ["3:55: turns[0].stop_sequence: ends an answer whose finish is stop, not length"],
    ),
    (
        "auto too long",
        part("auto: {tokens: 'uniform(1, 100001)'}"),
        [
            "3:28: turns[0].reply.auto.tokens: '100001' in 'uniform(1, 100001)' must be a number of tokens from 0 to 100000",
        ],
    ),
    (
        "auto of no distribution",
        part("auto: {tokens: gamma(2)}"),
        [
            "3:28: turns[0].reply.auto.tokens: 'gamma(2)' is no distribution; there are constant(VALUE), uniform(LEAST, GREATEST), normal(MEAN, DEVIATION), lognormal(MEDIAN, p99=VALUE), exponential(MEAN), samples(FILE)",
        ],
    ),
    (
        "auto alone",
        turn("reply: [{auto: true}, {text: hi}]"),
        [
            "3:13: turns[0].reply[0]: must be the only part of its reply",
        ],
    ),
    (
        "names",
        "scenario: a\nturns: [{reply: {text: hi}}]\n---\nscenario: a\nturns: [{reply: {text: hi}}]\n",
        [
            "4:11: scenario: 'a' is the name of another scenario, at <text>:1:11",
        ],
    ),
    (
        "matches",
        "scenario: a\nmatch: {user: x, tools: [f, g], headers: {B: y}}\nturns: [{reply: {text: hi}}]\n---\nscenario: b\nmatch: {headers: {b: y}, tools: [g, f], user: {contains: x}}\nturns: [{reply: {text: hi}}]\n",
        [
            "6:8: match: matches the same requests as scenario 'a', at <text>:2:8; add a condition to one of them, or a 'priority'",
        ],
    ),
    (
        "match body nan",
        top("match: {body: {t: .nan}}"),
        [
            "2:19: match.body.t: must be a number that JSON can represent, got .nan",
        ],
    ),
    (
        "split random",
        part("text: hi, split: {random: [8, 1]}"),
        [
            "3:39: turns[0].reply.split.random: must be two numbers, the smaller one first",
        ],
    ),
    (
        "too long",
        top("defaults: {ttft: 1500m}"),
        [
            "2:18: defaults.ttft: must be at most a day (1440m), got 1500m",
        ],
    ),
    (
        "unknown reply",
        'scenario: a\nreplies: {greeting: {text: hi}}\nturns:\n  - reply: [{use: greting}]\n    when: {api: chat, reply: {use: "1"}}\n',
        [
            "4:19: turns[0].reply[0].use: no reply is named 'greting'; did you mean 'greeting'?",
            "5:36: turns[0].when.reply.use: no reply is named '1'; they are greeting",
        ],
    ),
    (
        "no reply",
        part("use: a"),
        [
            "3:18: turns[0].reply.use: no reply is named 'a'; name one under 'replies', here or in a file that 'include' names",
        ],
    ),
    (
        "mistake in a named reply",
        "scenario: a\nreplies: {b: [{text: hi, split: [h]}]}\nturns:\n  - reply: {use: b}\n  - reply: [{use: b}, {text: c}]\n",
        [
            "2:33: replies.b[0].split: the fragments do not join to the text: from character 2 they give nothing more instead of 'i'",
        ],
    ),
    (
        "mistake of a use",
        "scenario: a\ntools: [{name: f}]\nreplies:\n  b: [{text: hi}, {tool: g}]\nturns:\n  - reply: [{text: c}, {use: b}, {tool: h}]\n  - reply: {use: b}\n",
        [
            "6:30: turns[0].reply[1].use: 'g' is not among the scenario's tools; they are f (at <text>:4:26)",
            "6:41: turns[0].reply[2].tool: 'h' is not among the scenario's tools; they are f",
            "7:18: turns[1].reply.use: 'g' is not among the scenario's tools; they are f (at <text>:4:26)",
        ],
    ),
    (
        "include without a folder",
        top("include: b.yaml"),
        [
            "2:10: include: names the file 'b.yaml', and this text is in no folder",
        ],
    ),
    (
        "too fine",
        top("defaults: {ttft: 0.5us}"),
        [
            "2:18: defaults.ttft: must be a whole number of microseconds, got 0.5us",
        ],
    ),
    (
        "retry_after twice",
        turn("{http: {status: 429, retry_after: 1s}, retry_after: 2s}"),
        ["3:44: turns[0]: 'retry_after' is written twice, here and under 'http'"],
    ),
    (
        "several",
        "scenario: A\nturns:\n  - reply:\n      - {tool: f, id: c1}\n      - {tool: f, id: c1, argument: {}}\n  - finish: done\n",
        [
            "1:11: scenario: must be a name of lower-case letters, digits and '-', such as two-tools, got A",
            "5:23: turns[0].reply[1].id: call id 'c1' is taken by an earlier call",
            "5:27: turns[0].reply[1]: unknown key 'argument'; did you mean 'arguments'?",
            "6:5: turns[1]: needs a 'reply', or 'http' for an error, or the 'answer' of a route",
            "6:13: turns[1].finish: must be one of stop, tool_calls, length, content_filter, refusal, none, got done; did you mean 'none'?",
        ],
    ),
]
