"""A client for streamed answers of language models that survives faults. Python 3.11, httpx.

    async with ResilientClient("chat", "https://api.openai.com/v1", key) as client:
        async with client.stream("gpt-5", "What is the weather?", tools) as pieces:
            async for piece in pieces:
                if piece is RESTART: ...           # remove what was shown: a retry begins
                elif isinstance(piece, str): ...   # show it
                else: ...                          # the complete `Answer`, with its tool calls

To cancel, leave the `async with`, or cancel the task. A failure is raised as one of the errors in
`failures.py`. A comment names the fault that its lines are there for.
"""

import asyncio
import codecs
import json
import random
import re
import time
import uuid
from contextlib import aclosing, asynccontextmanager, suppress

import httpx
from apis import APIS, Answer, error_of
from failures import ClientError, NetworkError, ProtocolError, StalledError, failure, service_error

RESTART = object()
TLS = httpx.create_ssl_context()  # once for all clients: it takes longer than a request
LIMITS = ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS")


class ResilientClient:
    """A client of one service. Times are in seconds; `longest_wait` limits one `retry-after`."""

    def __init__(self, api, base_url, key, *, tries=3, idle_timeout=30.0, deadline=600.0,
                 longest_wait=60.0, backoff=0.5):  # fmt: skip
        self.api, self.base_url, self.key = APIS[api], base_url, key
        self.tries, self.idle_timeout, self.deadline = tries, idle_timeout, deadline
        self.longest_wait, self.backoff = longest_wait, backoff
        self.http = httpx.AsyncClient(
            verify=TLS,
            # The limit for each read, of the headers and of the body: a stalled stream is given
            # up, and one that is only slow is not.
            timeout=httpx.Timeout(idle_timeout),
            # Any number, so that streams which stall do not hold up the others.
            limits=httpx.Limits(max_connections=None),
            follow_redirects=True,
            max_redirects=3,
            event_hooks={"response": [check_redirect]},
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception):
        await self.http.aclose()

    @asynccontextmanager
    async def stream(self, model, prompt, tools=()):
        url, headers, body = self.api.request(self.base_url, self.key, model, prompt, tools)
        # Made once: every try is the same request, and the service can see that it is.
        headers |= {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())}
        request = url, headers, json.dumps(body).encode()
        # The connection is closed when the block is left, however it is left.
        async with aclosing(self._pieces(request)) as pieces:
            yield pieces

    async def _pieces(self, request):
        """Texts, RESTART where they begin anew, and the answer, after as many tries as it takes."""
        end = time.monotonic() + self.deadline
        shown = ""  # what the user sees at present
        for attempt in range(1, self.tries + 1):
            answer, first = Answer(), True  # nothing of an earlier try is kept
            try:
                async with aclosing(self._attempt(request, answer, end)) as texts:
                    async for text in texts:
                        if first and shown:  # the beginning must not be there twice
                            yield RESTART
                            shown = ""
                        first = False
                        shown += text
                        yield text
            except ClientError as error:
                error.partial = shown
                wait = self._wait(error, attempt)
                if wait is None or time.monotonic() + wait > end:
                    raise
            else:
                if first and shown:
                    yield RESTART
                yield answer
                return
            await asyncio.sleep(wait)

    def _wait(self, error, attempt):
        """Seconds until the next try; None if there is none."""
        if not error.retry or attempt == self.tries:
            return None
        if error.retry_after is None:
            # Random, so that clients which failed together do not come back together; within
            # half of a step, so that the waits still grow.
            wait = self.backoff * 2 ** (attempt - 1) * random.uniform(1, 1.5)
            return min(wait, self.longest_wait)
        # To come earlier than that would be refused again.
        return error.retry_after if error.retry_after <= self.longest_wait else None

    async def _attempt(self, request, answer, end):
        """The texts of one try; fills the answer. Raises if the answer is not complete."""
        url, headers, content = request
        try:
            async with self.http.stream("POST", url, headers=headers, content=content) as response:
                form = response.headers.get("content-type", "")
                if response.status_code != 200 or not form.startswith("text/event-stream"):
                    raise await failure(response)
                events, chunks = Events(), response.aiter_bytes()
                async for chunk in chunks:
                    for event in events.feed(chunk):
                        if text := self._read(answer, event):
                            answer.text += text
                            yield text
                    if answer.ended:
                        break
                    if time.monotonic() > end:
                        raise StalledError(f"no complete answer within {self.deadline:g} s")
                await drain(chunks)
        except httpx.TimeoutException as error:
            raise StalledError(f"nothing came for {self.idle_timeout:g} s") from error
        except httpx.TransportError as error:  # refused, reset, or the last chunk is not whole
            raise NetworkError(f"the connection broke: {error or type(error).__name__}") from error
        except (httpx.DecodingError, httpx.TooManyRedirects) as error:
            raise ProtocolError(f"{type(error).__name__}: {error}") from error
        # A proxy may end a stream in order although its service broke off.
        if not (answer.ended or answer.finish):
            raise NetworkError("the stream was cut: it ended before the answer did")
        check_calls(answer)

    def _read(self, answer, event):
        """Adds an event to the answer; returns its text."""
        if event == "[DONE]":
            answer.ended = True
        if answer.ended:
            return ""
        try:
            value = json.loads(event)
            if error := error_of(value):
                raise service_error(error, f"the service reports: {error}")
            return self.api.read(answer, value)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            # To leave the event out would lose a part of the answer silently.
            raise ProtocolError(f"an event that cannot be read: {event[:200]}") from error


class Events:
    """Turns the bytes of a stream, cut anywhere, into the data of its events."""

    def __init__(self):
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.rest, self.data = "", []

    def feed(self, chunk):
        # Not splitlines(), which splits at characters that texts may have. A carriage return at
        # the end may be half of a line end.
        text = self.rest + self.decoder.decode(chunk)
        *lines, self.rest = re.split(r"\r\n|\n|\r(?!\Z)", text)
        for line in lines:
            if line.startswith("data:"):
                self.data.append(line.removeprefix("data:").removeprefix(" "))
            elif not line and self.data:  # without this blank line the event was cut
                yield "\n".join(self.data)
                self.data = []


async def drain(chunks):
    """Reads what follows the answer, so that its connection can be used again."""
    with suppress(httpx.TransportError, TimeoutError):
        async with asyncio.timeout(0.2):  # the user waits for the answer
            async for _ in chunks:
                pass


async def check_redirect(response):
    """Refuses redirects that would make a GET of the request, or give the key to another host."""
    if response.has_redirect_location:
        target = response.url.join(response.headers["location"])
        if response.status_code not in (307, 308) or target.netloc != response.url.netloc:
            raise ProtocolError(f"a redirect with status {response.status_code} to {target}")


def check_calls(answer):
    """Refuses calls that may not be whole. To repair them would be to guess what they mean."""
    if answer.calls and answer.finish in LIMITS:
        raise ProtocolError(f"the answer was cut by its limit ({answer.finish}), with calls in it")
    for call in answer.tool_calls():
        try:
            value = json.loads(call["arguments"])
        except ValueError:
            value = None
        if not call["name"] or not isinstance(value, dict):
            raise ProtocolError(f"the call {call['id']} cannot be run: {call['arguments'][:200]}")
