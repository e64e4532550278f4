"""Puts the events of AG-UI together. A name in brackets is a quirk of servers that a rule is there
for; `mockllm list quirks NAME` describes it.

AG-UI says what a client must refuse: events for calls that are not open, and a run that finishes
while anything is open."""

from answer import Answer, count, items, message, obj, text

MESSAGES = {"TEXT": "text", "REASONING": "reasoning", "THINKING_TEXT": "reasoning"}
SPANS = {
    "STEP_STARTED": ("step", "stepName", True),
    "STEP_FINISHED": ("step", "stepName", False),
    "REASONING_START": ("reasoning", "messageId", True),
    "REASONING_END": ("reasoning", "messageId", False),
}


class AGUI(Answer):
    def __init__(self):
        super().__init__("RUN_FINISHED or RUN_ERROR")
        self.messages, self.others = {}, set()  # others: messages that are not the answer's
        self.called, self.open_calls, self.open_spans = set(), {}, set()
        self.chunked = []  # calls that began with a chunk, which have no end
        self.latest = {"call": "", "text": "", "reasoning": ""}  # what a chunk without id continues

    def feed(self, payload, event=None):
        if self.failed:
            return
        value = obj(payload)
        type = text(value.get("type"))
        kind, _, stage = type.partition("_MESSAGE_")
        if stage and kind in MESSAGES:
            self.message(MESSAGES[kind], stage, value)
        elif type in SPANS:
            kind, key, begins = SPANS[type]
            span = kind, text(value.get(key))
            (self.open_spans.add if begins else self.open_spans.discard)(span)
        elif type.startswith("TOOL_CALL_"):
            self.call(type.removeprefix("TOOL_CALL_"), value)
        elif type == "REASONING_ENCRYPTED_VALUE":
            self.keep(value.get("encryptedValue"))
        elif type == "RUN_STARTED":  # a stream may have several runs; the last end counts
            self.complete, self.finish = False, None
        elif type == "RUN_FINISHED":
            self.finished(value)
        elif type == "RUN_ERROR" or (not type and value.get("error")):
            self.count_tokens(value)
            self.fail(message(value))

    def finished(self, value):
        for id in list(self.chunked):
            self.end_call(id)
        still = [call.name for call in self.open_calls.values()]
        still += sorted(" ".join(span) for span in self.open_spans)
        if still:  # a call may be incomplete [agui-open-call-at-finish]
            self.fail(f"RUN_FINISHED came while these were open: {', '.join(still)}")
            return
        self.count_tokens(value)
        self.finish, self.complete = "RUN_FINISHED", True

    def count_tokens(self, value):
        """Adds up the entries, one for each model."""
        entries = list(map(obj, items(value.get("usage"))))

        def total(name):
            known = [n for n in (count(entry.get(name)) for entry in entries) if n is not None]
            return sum(known) if known else None

        if entries:
            self.usage = {
                "input": total("inputTokens"),
                "output": total("outputTokens"),
                "reasoning": total("reasoningTokens"),
                "cached": total("cachedInputTokens"),
            }

    def message(self, kind, stage, value):
        """An event of a message: START, CONTENT or END; or CHUNK, which is the first two."""
        id = text(value.get("messageId"))
        if stage == "CHUNK":
            id = self.latest[kind] = id or self.latest[kind]
        if stage == "START" or (stage == "CHUNK" and id not in self.messages):
            self.messages[id] = len(self.messages)
            own = value.get("role") in (None, "assistant", "reasoning")
            (self.others.discard if own else self.others.add)(id)
        if stage == "START":
            self.open_spans.add((f"{kind} message", id))
        elif stage == "END":
            self.open_spans.discard((f"{kind} message", id))
        elif stage in ("CONTENT", "CHUNK") and id not in self.others:
            slot = self.messages.setdefault(id, len(self.messages))
            self.add(kind, text(value.get("delta")), (slot,))

    def call(self, stage, value):
        id = text(value.get("toolCallId"))
        if stage == "CHUNK":
            # Chunks of several calls may alternate, so they end with the run.
            id = self.latest["call"] = id or self.latest["call"]
            if id not in self.open_calls:
                if not text(value.get("toolCallName")):
                    self.fail(f"the first TOOL_CALL_CHUNK of {id} has no toolCallName")
                    return
                self.start_call(id, value)
                self.chunked.append(id)
            stage = "ARGS"
        if stage == "START":
            self.start_call(id, value)
        elif stage == "END":
            self.end_call(id)
        elif stage == "ARGS":
            if id in self.open_calls:
                self.open_calls[id].arguments += text(value.get("delta"))
            else:  # another call would run with these arguments [agui-args-wrong-id]
                self.fail(f"TOOL_CALL_ARGS for {id}, which is not open")

    def start_call(self, id, value):
        if id in self.called:  # it would run twice, or with half of it [agui-start-replayed]
            self.fail(f"TOOL_CALL_START of {id}, which has begun already")
        else:
            self.called.add(id)
            self.open_calls[id] = self.open(0, None, id, text(value.get("toolCallName")))

    def end_call(self, id):
        if id in self.chunked:
            self.chunked.remove(id)
        if self.open_calls.pop(id, None) is None:
            self.fail(f"TOOL_CALL_END of {id}, which is not open")
