"""What all APIs share: the answer so far, its calls, and how to read JSON of any type."""

import json

ERROR_KEYS = ("code", "status", "type")


class Call:
    """A call while its fragments arrive. `key` is what the API identifies it by; `closed` means
    that its arguments are final; `problem` is why it must not run."""

    def __init__(self, position, key=None, id="", name=""):
        self.position, self.key, self.id, self.name = position, key, id, name
        self.arguments = self.problem = ""
        self.closed = False


class Answer:
    """The answer so far. `end` is what ends a stream of the API, for the error message."""

    has_done = False  # whether the API ends its streams with [DONE]
    json_lines = False  # whether the API sends JSON lines instead of server-sent events
    raw_arguments = True  # whether the API sends arguments as text

    def __init__(self, end):
        self.end = end
        self.texts = {"text": {}, "reasoning": {}, "refusal": {}}  # by slot
        self.id = self.model = self.finish = self.usage = None
        self.calls, self.errors, self.opaque = [], [], []
        self.complete = self.failed = False

    def add(self, kind, fragment, slot=()):
        """Appends to a text. Texts of several slots are joined in the order of the slots."""
        if fragment:
            self.texts[kind].setdefault(slot, []).append(fragment)

    def replace(self, kind, whole, slot):
        """Replaces what was appended to a text by its final value."""
        self.texts[kind][slot] = [whole]

    def joined(self, kind):
        slots = self.texts[kind]
        return "".join("".join(slots[slot]) for slot in sorted(slots))

    def identify(self, id, model):
        """The first id and model that are not empty stay."""
        self.id = self.id or text(id) or None
        self.model = self.model or text(model) or None

    def keep(self, opaque):
        """Keeps what has to be sent back unchanged, such as a signature, once."""
        if text(opaque) and opaque not in self.opaque:
            self.opaque.append(opaque)

    def open(self, position, key=None, id="", name=""):
        call = Call(position, key, id, name)
        self.calls.append(call)
        return call

    def fail(self, message):
        """Ends the answer with an error: there is no finish, and what follows is ignored."""
        if not self.failed:
            self.failed, self.finish = True, None
            self.errors.append(message)

    def close(self):
        """Ends the input, and returns the outcome. Only an answer that is complete has calls: if
        it was cut, their arguments may be incomplete even if they are JSON."""
        if not self.complete:
            self.fail(f"the stream was cut: it ended without {self.end}")
        calls = [] if self.failed else sorted(self.calls, key=lambda call: call.position)
        for number, call in enumerate(calls):
            call.problem = call.problem or problem_of(call)
            if call.problem:
                self.errors.append(f"call {number} ({call.name}, {call.id}) {call.problem}")
            call.id = call.id or unused_id(number, calls)
        return {
            "text": self.joined("text"),
            "reasoning": self.joined("reasoning"),
            "refusal": self.joined("refusal"),
            "role": "assistant",
            "finish": self.finish,
            "tool_calls": [self.call_json(call) for call in calls if not call.problem],
            "usage": self.usage,
            "errors": self.errors,
            "crash": None,
            "opaque": self.opaque,
            "model": self.model,
            "response_id": self.id,
        }

    def call_json(self, call):
        if not self.raw_arguments:
            return {"id": call.id, "name": call.name, "arguments": parsed(call.arguments)}
        arguments = call.arguments or "{}"
        raw = call.arguments
        return {"id": call.id, "name": call.name, "arguments": arguments, "raw_arguments": raw}


def problem_of(call):
    """Why a call must not run; "" if it may. Broken arguments are not repaired: that would be
    to guess what the tool should do."""
    if not call.name:
        return "never got a name"
    if "null" in (call.id, call.name):
        return "has the text null for an id or a name"
    if parsed(call.arguments) is None:
        return f"has arguments that are no JSON object: {call.arguments[:200]}"
    return ""


def unused_id(number, calls):
    """An id for a call that got none, the same each time."""
    id = f"call_{number}"
    while any(call.id == id for call in calls):
        id += "_"
    return id


def parsed(arguments):
    """The arguments as an object; None if they are none. Empty text means no arguments."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# A server may send null, or another type, for every field.


def obj(value):
    return value if isinstance(value, dict) else {}


def items(value):
    return value if isinstance(value, list) else []


def text(value):
    return value if isinstance(value, str) else ""


def count(value):
    """A whole number, also one written as 7.0; otherwise None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def arguments_text(value):
    """Arguments as text, also if they came as an object; null is empty."""
    return to_json(value) if isinstance(value, (dict, list)) else text(value)


def to_json(value):
    return json.dumps(value, separators=(",", ":"))


def message(error):
    """The message of an error in the shape of any service, with its code or type."""
    while isinstance(error, dict) and error.get("error"):
        error = error["error"]
    if not isinstance(error, dict):
        return error if isinstance(error, str) else to_json(error)
    code = next((str(error[key]) for key in ERROR_KEYS if error.get(key)), "")
    found = text(error.get("message")) or to_json(error)
    return f"{found} ({code})" if code else found
