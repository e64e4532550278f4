"""The client under test: replace what is here by your client, and keep `runner.py`.

A client gets the answer of a model as it comes from the network, in reads of bytes
(`feed_bytes`), or as decoded events (`feed_event`). `close` ends the input and returns what the
client made of the answer, with the keys of the protocol of runners.
"""

from agui import AGUI
from anthropic_messages import Anthropic
from bedrock import Bedrock
from chat import Chat
from cohere import Cohere
from completions import Completions
from frames import Frames
from gemini import Gemini
from ollama import Ollama
from responses import Responses
from sse import Events

CLIENT = {
    "name": "example-python",
    "version": "1.0",
    "language": "python",
    "entry_point": "Client.feed_bytes()",
    "adapter": "runner.py",
}

APIS = {
    "chat": Chat,
    "responses": Responses,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "agui": AGUI,
    "ollama": Ollama,
    "completions": Completions,
    "cohere": Cohere,
    "bedrock": Bedrock,
}


def create(api):
    """A new client for one answer."""
    return Client(APIS[api](), Frames if api == "bedrock" else Events)


class Client:
    def __init__(self, answer, reader):
        self.answer = answer
        self.events = reader(answer)

    def feed_bytes(self, data):
        self.events.feed(data)

    def feed_event(self, event, payload):
        self.answer.feed(payload, event)

    def close(self):
        self.events.close()
        return self.answer.close()
