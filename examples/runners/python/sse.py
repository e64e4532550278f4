"""Turns the bytes of a stream into events: JSON in server-sent events, JSON lines, or plain JSON.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

import codecs
import json


class Events:
    """Passes the events of a stream on to `answer.feed(payload, event)`, errors to `answer.fail`.

    `done` is the data that end the answer, if the API has any; what follows is ignored. In other
    APIs it has no meaning, but proxies send it.
    """

    def __init__(self, answer):
        self.answer = answer
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.started = self.after_cr = self.ended = False
        self.partial = []  # of the line that has not ended; joined once, since it may be long
        self.event = ""
        self.data = []
        self.body = []

    def feed(self, data):
        """Takes one read, which may end anywhere, also within a character or a line end."""
        text = self.decoder.decode(data)
        if not text:
            return
        if not self.started:
            self.started = True
            text = text.removeprefix("\ufeff")
        if self.after_cr:
            text = text.removeprefix("\n")
        self.after_cr = text.endswith("\r")
        # Not splitlines(): it also splits at U+2028 and others, which JSON text may have.
        first, *lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.partial.append(first)
        for line in lines:
            self.line("".join(self.partial))
            self.partial = [line]

    def line(self, line):
        if self.ended:
            return
        if self.answer.json_lines:
            self.data, line = [line.strip()], ""  # nothing in a blank one [ollama-blank-lines]
        if not line:
            self.dispatch()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self.data.append(value)
        elif name == "event":
            self.event = value
        elif name not in ("", "id", "retry") and (self.body or line[0] in "{["):
            self.body.append(line)  # an error or an answer as plain JSON

    def dispatch(self):
        """A blank line ends an event."""
        data, event = "\n".join(self.data), self.event
        self.data, self.event = [], ""
        if not data or self.is_done(data):
            return
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            # To leave it out would lose a part of the answer silently.
            self.answer.fail(f"the data of an event are no JSON: {data[:200]}")
            self.ended = True
        else:
            self.answer.feed(payload, event or None)

    def is_done(self, data):
        if data.rstrip() != "[DONE]":
            return False
        self.ended = self.answer.has_done
        return True

    def close(self):
        """Ends the input. The last event may lack its blank line if its JSON is complete."""
        self.feed_rest()
        body = "\n".join(self.body)
        try:
            value = json.loads(body) if body and not self.ended else []
        except (ValueError, RecursionError):
            return  # it was cut; so the answer has no end
        for payload in value if isinstance(value, list) else [value]:
            self.answer.feed(payload, None)

    def feed_rest(self):
        rest = "".join(self.partial) + self.decoder.decode(b"", final=True)
        if rest:
            self.line(rest)
        if not self.ended:
            self.dispatch()
