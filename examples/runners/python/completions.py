"""Puts the chunks of OpenAI's legacy Completions together: those of Chat Completions, but for the
text, which is in the choice itself. The API has no calls and no reasoning."""

from answer import items, obj, text
from chat import Chat


class Completions(Chat):
    def feed(self, payload, event=None):
        for choice in map(obj, items(obj(payload).get("choices"))):
            if not self.failed and not choice.get("index"):  # the request has n=1 [compl-n-choices]
                self.add("text", text(choice.get("text")))
        super().feed(payload, event)
