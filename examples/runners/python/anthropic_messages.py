"""Puts the events of the Anthropic Messages API together. A name in brackets is a quirk of servers
that a rule is there for; `mockllm list quirks NAME` describes it.

A message is a list of blocks, each with a start, deltas and a stop."""

from answer import Answer, arguments_text, count, items, message, obj, parsed, text


class Block:
    def __init__(self, type, slot, call, initial):
        self.type, self.slot, self.call = type, slot, call
        self.initial = initial  # the arguments in its start
        self.signature = ""


class Anthropic(Answer):
    def __init__(self):
        super().__init__("a message_delta with its stop_reason, or message_stop")
        self.started = self.stopped = False
        self.blocks = {}  # by index, which is a key and no position [anth-index-gap]
        self.begun = 0
        self.tokens = {}

    def feed(self, payload, event=None):
        if self.failed or self.stopped:
            return
        value = obj(payload)
        # The type in the JSON counts; the event line may be missing [anth-no-event-lines].
        type = text(value.get("type")) or ("error" if value.get("error") else event or "")
        index = count(value.get("index"))
        if type == "message_start":
            self.start_message(obj(value.get("message")))
        elif type == "content_block_start":
            self.start(index, obj(value.get("content_block")))
        elif type == "content_block_delta" and index in self.blocks:
            self.delta(self.blocks[index], obj(value.get("delta")))
        elif type == "content_block_delta":  # [anth-start-missing]
            self.fail(f"a delta came for block {index}, which has not started")
        elif type == "content_block_stop" and index in self.blocks:
            self.end_block(self.blocks[index])
        elif type == "message_delta":
            self.count_tokens(obj(value.get("usage")))
            self.stop(text(obj(value.get("delta")).get("stop_reason")))
        elif type == "message_stop":
            self.complete = self.stopped = True
            self.end_blocks()
        elif type == "error":
            self.fail(message(value.get("error") or payload))

    # The message

    def start_message(self, value):
        if self.started:  # a proxy sent the request again [anth-message-start-twice]
            self.fail("message_start came twice in one stream")
            return
        self.started = True
        self.identify(value.get("id"), value.get("model"))
        usage, blocks = obj(value.get("usage")), list(map(obj, items(value.get("content"))))
        if all(map(is_placeholder, blocks)):
            # The output tokens are an estimate here.
            self.count_tokens({**usage, "output_tokens": None})
            return
        for index, block in enumerate(blocks):  # the message is complete in its start
            self.start(index, block)
            self.end_block(self.blocks[index])
        self.count_tokens(usage)
        self.stop(text(value.get("stop_reason")))

    def stop(self, reason):
        if reason and not self.failed:  # null does not erase it [anth-two-message-delta]
            self.finish = reason
            self.complete = True
            self.end_blocks()

    def end_blocks(self):
        """Ends the blocks without a stop. If a limit ended the answer inside a call, its arguments
        may only look complete [anth-tool-cut-by-limit]."""
        cut = self.finish not in (None, "tool_use", "end_turn")
        for block in self.blocks.values():
            call = block.call
            unfinished = cut and call and not call.closed
            if unfinished and (not call.arguments or parsed(call.arguments) is None):
                call.problem = f"was cut off by {self.finish}"
            self.end_block(block)

    # Blocks

    def start(self, index, block):
        type, slot = text(block.get("type")), (index or 0, self.begun)
        self.begun += 1
        call = None
        if type == "tool_use":
            call = self.open(slot[0], index, text(block.get("id")), text(block.get("name")))
        if index in self.blocks:  # the same index again is a new block [anth-index-all-zero]
            self.end_block(self.blocks[index])
        # The service sends {} if the arguments follow in deltas [anth-input-in-start].
        initial = arguments_text(block.get("input") or "")
        begun = self.blocks[index] = Block(type, slot, call, initial)
        if type == "text":
            self.add("text", text(block.get("text")), slot)  # [anth-text-in-start]
        elif type == "thinking":
            self.add("reasoning", text(block.get("thinking")), slot)
            begun.signature = text(block.get("signature"))
        elif type == "redacted_thinking":
            self.keep(block.get("data"))

    def delta(self, block, delta):
        kinds = block.type, delta.get("type")
        if kinds == ("text", "text_delta"):
            self.add("text", text(delta.get("text")), block.slot)
        elif kinds == ("thinking", "thinking_delta"):
            self.add("reasoning", text(delta.get("thinking")), block.slot)
        elif kinds == ("thinking", "signature_delta"):
            block.signature += text(delta.get("signature"))  # one delta or several
        elif kinds == ("tool_use", "input_json_delta") and not block.call.closed:
            block.call.arguments += text(delta.get("partial_json"))

    def end_block(self, block):
        self.keep(block.signature)
        if block.call and not block.call.closed:
            block.call.arguments = block.call.arguments or block.initial
            block.call.closed = True

    def count_tokens(self, usage):
        """Each count is a total and replaces an earlier one; a missing one does not erase it."""
        thinking = obj(usage.get("output_tokens_details")).get("thinking_tokens")
        for name, value in {**usage, "thinking_tokens": thinking}.items():
            if count(value) is not None:
                self.tokens[name] = count(value)
        input, cached = self.tokens.get("input_tokens"), self.tokens.get("cache_read_input_tokens")
        if input is not None:  # it excludes tokens that are read from the cache or written to it
            input += (cached or 0) + self.tokens.get("cache_creation_input_tokens", 0)
        if self.tokens:
            self.usage = {
                "input": input,
                "output": self.tokens.get("output_tokens"),
                "reasoning": self.tokens.get("thinking_tokens"),
                "cached": cached,
            }


def is_placeholder(block):
    """Whether a block in message_start is empty: proxies send one, and open the block later."""
    empty = not (block.get("text") or block.get("thinking") or block.get("signature"))
    return empty and block.get("type") in ("text", "thinking")
