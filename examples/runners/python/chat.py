"""Puts the chunks of OpenAI Chat Completions together. A name in brackets is a quirk of servers
that a rule is there for; `mockllm list quirks NAME` describes it."""

from answer import Answer, arguments_text, count, items, message, obj, text


class Chat(Answer):
    has_done = True

    def __init__(self):
        super().__init__("a finish_reason")
        self.last = None  # the call that the last fragment belongs to

    def feed(self, payload, event=None):
        if self.failed:
            return
        chunk = obj(payload)
        self.identify(chunk.get("id"), chunk.get("model"))
        bare = event == "error" or chunk.get("object") == "error"  # [err-event-line]
        error = chunk.get("error") or (payload if bare else None)
        for choice in map(obj, items(chunk.get("choices"))):
            if not choice.get("index"):  # the request has n=1 [chat-n-choices]
                self.choice(choice, error is not None)
        self.count_tokens(obj(chunk.get("usage") or obj(chunk.get("x_groq")).get("usage")))
        if error is not None:
            self.fail(message(error))

    def choice(self, choice, failing):
        # The delta first: the chunk with the finish may have one, and more deltas may follow it
        # [chat-finish-with-last-delta, chat-delta-after-finish].
        delta = obj(choice.get("delta"))
        reasoning, content = parts(delta.get("content"))
        details = list(map(obj, items(delta.get("reasoning_details"))))
        summary = "".join(text(d.get("text")) or text(d.get("summary")) for d in details)
        # Several fields repeat each other [chat-reasoning-fields].
        fields = [delta.get("reasoning_content"), delta.get("reasoning")]
        self.add("reasoning", reasoning or next(filter(None, map(text, fields)), summary))
        self.add("text", content)
        self.add("refusal", text(delta.get("refusal")))
        for detail in details:
            self.keep(detail.get("signature"))
            self.keep(detail.get("data"))
        for entry in map(obj, items(delta.get("tool_calls"))):
            if "custom" not in entry or "function" in entry:
                self.fragment(entry)
        finish = text(choice.get("finish_reason"))
        if finish and not failing:
            self.finish = self.finish or finish  # the first one counts [chat-finish-twice]
            self.complete = True

    def fragment(self, entry):
        """Adds a fragment to its call. Null and "" mean absent, in every field."""
        function = obj(entry.get("function"))
        index, id = count(entry.get("index")), text(entry.get("id"))
        name = text(function.get("name"))
        call = self.find(index, id, name)
        if call is None:
            call = self.open(len(self.calls) if index is None else index, index)
        self.last = call
        call.id = call.id or id  # the first id stays [chat-id-new-every-chunk]
        if name != call.name:  # the same name again is a repetition [chat-name-repeated]
            call.name += name  # another one is its next fragment [chat-name-split]
        call.arguments += arguments_text(function.get("arguments"))  # [chat-args-object]
        google = obj(obj(entry.get("extra_content")).get("google"))
        self.keep(google.get("thought_signature"))

    def find(self, index, id, name):
        """The call that a fragment continues; None if it begins a new one."""
        same = [call for call in self.calls if index is None or call.key == index]
        if not same:
            return None
        known = [call for call in same if id and call.id == id]
        if known:
            return known[-1]
        last = self.last if index is None else same[-1]
        if id and last.id:
            # Servers give all calls the index 0 [chat-index-all-zero], leave it out
            # [chat-index-missing], or invent an id for each chunk [chat-id-new-every-chunk].
            new = bool(name) or index is None
        elif name and last.name:
            new = index is None or (name != last.name and last.arguments)
        else:
            new = False
        return None if new else last

    def count_tokens(self, usage):
        """Each usage is a total, so the last one counts; null does not erase it."""
        input, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
        if input is None and output is None:
            return
        self.usage = {
            "input": input,
            "output": output,
            "reasoning": count(obj(usage.get("completion_tokens_details")).get("reasoning_tokens")),
            "cached": count(obj(usage.get("prompt_tokens_details")).get("cached_tokens")),
        }


def parts(content):
    """The reasoning and the text of a content, maybe a list of parts [chat-content-parts]."""
    if isinstance(content, str):
        return "", content
    thoughts, texts = "", ""
    for part in map(obj, items(content)):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thoughts += inner if isinstance(inner, str) else parts(inner)[1]
        else:
            texts += text(part.get("text"))
    return thoughts, texts
