"""Puts the objects of Ollama's own API together, of `/api/chat` and of `/api/generate`. A name in
brackets is a quirk of servers that a rule is there for; `mockllm list quirks NAME` describes it.

Every line is an object with only what is new in it; calls are whole. No field is required."""

from answer import Answer, count, items, message, obj, text, to_json


class Ollama(Answer):
    json_lines = True
    raw_arguments = False

    def __init__(self):
        super().__init__("done: true")

    def feed(self, payload, event=None):
        if self.failed:
            return
        value = obj(payload)
        if value.get("error") is not None:  # the status was sent before [ollama-error-line]
            self.fail(message(value["error"]))
            return
        self.identify(None, value.get("model"))
        # `/api/generate` has no message, and the text in `response`.
        part = obj(value.get("message")) or value
        self.add("reasoning", text(part.get("thinking")))
        self.add("text", text(part.get("content") or part.get("response")))
        for call in map(obj, items(part.get("tool_calls"))):
            self.call(call)
        # The object that ends the answer may have calls, too [ollama-calls-in-last]. A reason is
        # an end without `done` as well [ollama-done-missing].
        done, reason = value.get("done"), text(value.get("done_reason"))
        if done is True or (reason and done is None):
            self.finish = reason or "stop"
            self.complete = True
            self.count_tokens(value)

    def call(self, value):
        """Each entry is a call of its own, whatever its index [ollama-same-index]."""
        function = obj(value.get("function"))
        call = self.open(0, None, text(value.get("id")), text(function.get("name")))
        arguments = function.get("arguments")
        if arguments is not None:  # maybe as JSON text [ollama-args-string]
            call.arguments = arguments if isinstance(arguments, str) else to_json(arguments)

    def count_tokens(self, value):
        """Counts of zero are left out, as is a prompt in the cache [ollama-counts-missing]."""
        names = ("prompt_eval_count", "eval_count", "prompt_eval_cached_count")
        counts = [count(value.get(name)) for name in names]
        if any(found is not None for found in counts):
            input, output, cached = (found or 0 for found in counts)
            self.usage = {"input": input, "output": output, "reasoning": 0, "cached": cached}
