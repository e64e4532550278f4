"""Puts the events of Amazon Bedrock's Converse API together. A name in brackets is a quirk of
servers that a rule is there for; `mockllm list quirks NAME` describes it.

An event is an object with one key, its name. A message is a list of blocks; those of text and
reasoning have no start."""

from answer import Answer, count, obj, text


class Bedrock(Answer):
    def __init__(self):
        super().__init__("messageStop")
        self.open_calls, self.signatures = {}, {}  # by the index of their block

    def feed(self, payload, event=None):
        for name, value in obj(payload).items():
            if not self.failed:
                self.event(name, obj(value))

    def event(self, name, value):
        index = count(value.get("contentBlockIndex")) or 0
        if name == "error" or name.endswith("Exception"):
            # Also one with an unknown name [bedrock-exception-unknown].
            message = text(value.get("message")) or "the stream reports an error"
            self.fail(f"{message} ({text(value.get('code')) or name})")
        elif name == "metadata":  # after the end
            self.count_tokens(obj(value.get("usage")))
        elif self.complete:
            pass
        elif name == "contentBlockStart":
            self.start(index, obj(obj(value.get("start")).get("toolUse")))
        elif name == "contentBlockDelta":
            self.delta(index, obj(value.get("delta")))
        elif name == "contentBlockStop":
            self.stop(index)
        elif name == "messageStop":
            # Calls count, whatever the reason says [bedrock-end-turn-with-call].
            self.finish = text(value.get("stopReason")) or None
            self.complete = True
            self.stop_all()

    def start(self, index, use):
        self.stop(index)
        # The service runs its own tools [bedrock-server-tool-type].
        if use and use.get("type") != "server_tool_use":
            id, name = text(use.get("toolUseId")), text(use.get("name"))
            self.open_calls[index] = self.open(index, index, id, name)

    def delta(self, index, delta):
        reasoning = obj(delta.get("reasoningContent"))
        self.add("text", text(delta.get("text")), (index,))
        self.add("reasoning", text(reasoning.get("text")), (index,))
        signature = text(reasoning.get("signature"))  # in one delta or several
        self.signatures[index] = self.signatures.get(index, "") + signature
        self.keep(reasoning.get("redactedContent"))
        if index in self.open_calls:
            self.open_calls[index].arguments += text(obj(delta.get("toolUse")).get("input"))

    def stop(self, index):
        self.keep(self.signatures.pop(index, ""))
        self.open_calls.pop(index, None)

    def stop_all(self):
        """Ends the blocks without a stop [bedrock-no-block-stop]. If a limit ended the answer, a
        call without arguments may have lost them."""
        for call in self.open_calls.values():
            if not call.arguments and self.finish not in ("tool_use", "end_turn"):
                call.problem = f"was cut off by {self.finish}"
        for index in {*self.open_calls, *self.signatures}:
            self.stop(index)

    def count_tokens(self, usage):
        """A second event may have no usage [bedrock-metadata-twice]. `inputTokens` excludes tokens
        that are read from the cache or written to it."""
        input, output = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
        if input is None and output is None:
            return
        cached = count(usage.get("cacheReadInputTokens"))
        written = count(usage.get("cacheWriteInputTokens")) or 0
        input = (input or 0) + (cached or 0) + written
        self.usage = {"input": input, "output": output, "reasoning": None, "cached": cached}
