"""Puts the events of Cohere's Chat API, version 2, together. A name in brackets is a quirk of
servers that a rule is there for; `mockllm list quirks NAME` describes it.

The deltas have the places of a whole message, but objects where the message has lists."""

from answer import Answer, count, message, obj, text


class Cohere(Answer):
    has_done = True

    def __init__(self):
        super().__init__("message-end")
        self.open_calls = {}  # by index

    def feed(self, payload, event=None):
        if self.failed or self.complete:
            return
        value = obj(payload)
        type = text(value.get("type")) or event or ""
        index, delta = count(value.get("index")), obj(value.get("delta"))
        part = obj(delta.get("message"))
        if type == "message-start":
            self.identify(value.get("id"), None)
        elif type in ("content-start", "content-delta"):
            # Blocks of reasoning and of text may have the same index [cohere-content-index].
            content = obj(part.get("content"))
            self.add("reasoning", text(content.get("thinking")))
            self.add("text", text(content.get("text")))
        elif type == "tool-plan-delta":  # what the model says before its calls
            self.add("text", text(part.get("tool_plan")))
        elif type in ("tool-call-start", "tool-call-delta"):
            call = obj(part.get("tool_calls"))
            function = obj(call.get("function"))
            if type == "tool-call-start":
                id, name = text(call.get("id")), text(function.get("name"))
                self.open_calls[index] = self.open(0, index, id, name)
            self.add_arguments(self.open_calls.get(index), text(function.get("arguments")))
        elif type == "tool-call-end":
            self.open_calls.pop(index, None)
        elif type == "message-end":
            self.end_answer(delta)
        elif value.get("error") or text(value.get("message")):
            self.fail(message(value))  # an error of a proxy has no type of its own

    def add_arguments(self, call, fragment):
        # A call without arguments may have the text null [cohere-zero-arg].
        if call and (call.arguments or fragment != "null"):
            call.arguments += fragment

    def end_answer(self, delta):
        self.count_tokens(obj(delta.get("usage")))
        finish, error = text(delta.get("finish_reason")), text(delta.get("error"))
        if error or finish in ("ERROR", "TIMEOUT"):  # no other event says it [cohere-error-finish]
            self.fail(error or f"the answer ended in {finish}")
        else:
            self.finish = finish or None
            self.complete = True

    def count_tokens(self, usage):
        """The tokens that the model read and wrote; fewer are billed [cohere-two-usages]."""
        tokens = obj(usage.get("tokens")) or obj(usage.get("billed_units"))
        input, output = count(tokens.get("input_tokens")), count(tokens.get("output_tokens"))
        if input is None and output is None:
            return
        cached = count(usage.get("cached_tokens"))
        self.usage = {"input": input, "output": output, "reasoning": None, "cached": cached}
