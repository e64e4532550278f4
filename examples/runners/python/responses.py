"""Puts the events of the OpenAI Responses API together. A name in brackets is a quirk of servers
that a rule is there for; `mockllm list quirks NAME` describes it.

An answer is a list of items, each with the events `added`, deltas and `done`. A `done` repeats all
that the deltas have sent."""

from answer import Answer, arguments_text, count, items, message, obj, parsed, text

# The middle of an event's name: the type of its item, the kind of text, the list that has it.
TEXT_EVENTS = {
    "output_text": ("message", "text", "content"),
    "refusal": ("message", "refusal", "content"),
    "reasoning_summary_text": ("reasoning", "reasoning", "summary"),
    "reasoning_text": ("reasoning", "reasoning", "content"),
}
# The type of a part: the kind of text, and the field that has it.
PARTS = {
    "output_text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "summary_text": ("reasoning", "text"),
    "reasoning_text": ("reasoning", "text"),
}
ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}


class Item:
    def __init__(self, type, index, number):
        self.type, self.index, self.number = type, index, number
        self.ids, self.final = set(), set()  # final: the slots whose text is final
        self.call, self.initial = None, ""  # initial: the arguments in `added`

    def slot(self, where, index):
        """The place of a part; summaries come before contents."""
        return self.index, self.number, int(where == "content"), count(index) or 0


class Responses(Answer):
    def __init__(self):
        super().__init__("response.completed, .incomplete or .failed")
        self.items = []

    def feed(self, payload, event=None):
        value = obj(payload)
        type = text(value.get("type")) or ("error" if value.get("error") else event or "")
        response = obj(value.get("response"))
        self.identify(response.get("id"), response.get("model"))
        if self.failed and type == "response.failed":
            self.count_tokens(obj(response.get("usage")))
        if self.failed or self.complete:
            return  # [resp-after-completed]
        name, _, stage = type.removeprefix("response.").partition(".")
        if type in ENDS:
            self.end_answer(ENDS[type], response)
        elif type == "error":
            self.fail(message(value.get("error") or payload))  # nested or flat [resp-error-shape]
        elif type == "response.output_item.added":
            fields = obj(value.get("item"))
            item = self.begin(text(fields.get("type")), count(value.get("output_index")) or 0)
            self.name_item(item, fields)
            item.initial = arguments_text(fields.get("arguments"))  # [resp-args-in-added]
        elif type == "response.output_item.done":
            self.item_done(value, obj(value.get("item")))
        elif name == "function_call_arguments":
            self.arguments(stage, value)
        elif name in ("content_part", "reasoning_summary_part") and stage == "done":
            self.part_done(value, obj(value.get("part")))
        elif name in TEXT_EVENTS and stage in ("delta", "done"):
            self.text_event(name, stage, value)

    # Items

    def find(self, type, value):
        """The item of an event; a new one if there was no `added` [resp-missing-openers].

        Its index identifies it, since ids change from event to event [resp-item-id-rotates]. If
        several items share an index, a known id decides, else the last one counts."""
        index = count(value.get("output_index")) or 0
        same = [one for one in self.items if one.index == index and one.type == type]
        known = [one for one in same if text(value.get("item_id")) in one.ids]
        return (known[:1] or same[-1:] or [None])[0] or self.begin(type, index)

    def find_call(self, index, fields):
        """The item of a call that is sent as a whole: its call_id identifies it."""
        index, id = count(index) or 0, text(fields.get("call_id"))
        calls = [one for one in self.items if one.call]
        same = [one for one in calls if one.index == index]
        for one in same + calls:
            if id and one.call.id == id:
                return one
        for one in reversed(same):
            if not (id and one.call.id):
                return one
        return self.begin("function_call", index)

    def begin(self, type, index):
        item = Item(type, index, len(self.items))
        if type == "function_call":
            item.call = self.open(index)
        self.items.append(item)
        return item

    def name_item(self, item, fields):
        """Takes the ids and the name; the first ones stay."""
        if text(fields.get("id")):
            item.ids.add(fields["id"])
        if item.call and not item.call.closed:
            item.call.id = item.call.id or text(fields.get("call_id"))
            item.call.name = item.call.name or text(fields.get("name"))

    def item_done(self, value, fields):
        type = text(fields.get("type"))
        if type == "function_call":
            item = self.find_call(value.get("output_index"), fields)
        else:
            item = self.find(type, {**value, "item_id": fields.get("id")})
        self.name_item(item, fields)
        for where in ("summary", "content"):
            for index, part in enumerate(map(obj, items(fields.get(where)))):
                self.final_part(item, item.slot(where, index), part)
        self.keep(fields.get("encrypted_content"))
        if item.call:
            self.final_arguments(item.call, fields)
            if fields.get("status") != "incomplete":
                self.end_call(item)

    # Texts

    def text_event(self, name, stage, value):
        type, kind, where = TEXT_EVENTS[name]
        item = self.find(type, value)
        slot = item.slot(where, value.get(f"{where}_index"))
        if stage == "done":
            self.final_text(item, slot, kind, value.get("refusal" if kind == "refusal" else "text"))
        elif slot not in item.final:
            self.add(kind, text(value.get("delta")), slot)

    def part_done(self, value, part):
        type = text(part.get("type"))
        if type in PARTS:
            item = self.find("reasoning" if PARTS[type][0] == "reasoning" else "message", value)
            where = "summary" if type == "summary_text" else "content"
            self.final_part(item, item.slot(where, value.get(f"{where}_index")), part)

    def final_part(self, item, slot, part):
        type = text(part.get("type"))
        if type in PARTS:
            kind, key = PARTS[type]
            self.final_text(item, slot, kind, part.get(key))

    def final_text(self, item, slot, kind, whole):
        """Replaces the deltas [resp-dup-done]; empty text is no value, but left out."""
        if text(whole):
            item.final.add(slot)
            self.replace(kind, whole, slot)

    # Calls

    def arguments(self, stage, value):
        item = self.find("function_call", value)
        call = item.call
        if call.closed:
            return
        if stage == "delta":
            call.arguments += text(value.get("delta"))
        elif stage == "done":
            self.final_arguments(call, value)
            if call.name and call.id and call.arguments:
                self.end_call(item)

    def final_arguments(self, call, fields):
        if not call.closed:
            call.arguments = arguments_text(fields.get("arguments")) or call.arguments

    def end_call(self, item):
        if not item.call.closed:
            item.call.arguments = item.call.arguments or item.initial
            item.call.closed = True

    # The end

    def end_answer(self, status, response):
        self.count_tokens(obj(response.get("usage")))
        if status == "failed" or response.get("error"):
            self.fail(message(response.get("error") or "the response failed"))
            return
        self.fill(items(response.get("output")))
        self.finish = text(obj(response.get("incomplete_details")).get("reason")) or status
        self.complete = True
        for item in self.items:
            call = item.call
            if not call or call.closed:
                continue
            if status == "incomplete" and (not call.arguments or parsed(call.arguments) is None):
                call.problem = f"was cut off by {self.finish}"
            self.end_call(item)

    def fill(self, output):
        """Takes what only the final response has [resp-completed-output-empty]. Positions in it
        need not be the indexes of the items."""
        had = {kind for kind, slots in self.texts.items() if slots}
        for index, fields in enumerate(map(obj, output)):
            if fields.get("type") == "function_call":
                item = self.find_call(index, fields)
                self.name_item(item, fields)
                self.final_arguments(item.call, fields)
                continue
            for where in ("summary", "content"):
                for position, part in enumerate(map(obj, items(fields.get(where)))):
                    kind, key = PARTS.get(text(part.get("type")), ("", ""))
                    if kind and kind not in had:
                        slot = (index, len(self.items), int(where == "content"), position)
                        self.replace(kind, text(part.get(key)), slot)

    def count_tokens(self, usage):
        if usage:
            self.usage = {
                "input": count(usage.get("input_tokens")),
                "output": count(usage.get("output_tokens")),
                "reasoning": count(obj(usage.get("output_tokens_details")).get("reasoning_tokens")),
                "cached": count(obj(usage.get("input_tokens_details")).get("cached_tokens")),
            }
