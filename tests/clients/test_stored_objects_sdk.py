"""Objects that clients make at OpenAI and change there (`--fallback auto`), with its SDK."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle, islice
from typing import Any

import openai
import pytest

from mockllm.play.replay.loading import loads
from mockllm.serve.server.thread import ServerThread
from tests.serve.server.jobs.servers import openai_client, urls
from tests.serve.server.shared_state.replicas import redis_server

SCENARIOS = """
scenario: a
match: {user: Hi}
turns: [{reply: {text: Hello}}, {reply: {text: Bye}}]
"""


class InTurns:
    """Clients of several servers that share their state: each call goes to the next one."""

    def __init__(self, clients: list[openai.OpenAI]) -> None:
        self._clients = cycle(clients)

    def __getattr__(self, name: str) -> Any:
        return getattr(next(self._clients), name)


@pytest.fixture(
    scope="module", params=["alone", "sqlite", pytest.param("redis", marks=pytest.mark.slow)]
)
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """The URLs of a server with answers made from requests, or of two that share their state."""
    folder, options = tmp_path_factory.mktemp("state"), {}
    with ExitStack() as stack:
        if request.param == "redis":
            options["state"] = stack.enter_context(redis_server(folder)).url
        count = 1 if request.param == "alone" else 2
        running = stack.enter_context(urls(SCENARIOS, folder, count, fallback=True, **options))
        yield list(islice(running, count))


@pytest.fixture
def client(servers: list[str], request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client with a session of its own."""
    with ExitStack() as stack:
        name = request.node.originalname
        clients = [openai_client(f"{url}/s/{name}") for url in servers]
        yield InTurns([stack.enter_context(made) for made in clients])


# Conversations


def texts(client: openai.OpenAI, conversation: str, **query: Any) -> list[str]:
    """The texts of a conversation's items."""
    items: Any = client.conversations.items.list(conversation, **query)
    return [item.content[0].text for item in items]


def user(text: str) -> Any:
    return {"type": "message", "role": "user", "content": text}


def test_conversations(client: openai.OpenAI) -> None:
    """They are made, shown, changed and deleted, and keep their metadata."""
    made = client.conversations.create(metadata={"topic": "demo"})
    assert made.id.startswith("conv_")
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "other"})
    assert client.conversations.retrieve(made.id) == changed
    assert changed.metadata == {"topic": "other"}
    assert client.conversations.create().id != made.id
    deleted = client.conversations.delete(made.id)
    assert (deleted.id, deleted.deleted) == (made.id, True)
    with pytest.raises(openai.NotFoundError, match=f"Conversation with id '{made.id}' not found"):
        client.conversations.retrieve(made.id)


def test_items_of_conversations(client: openai.OpenAI) -> None:
    """Items are added, listed in pages and removed, each with an id of its own."""
    id = client.conversations.create(items=[user("one")]).id
    added = client.conversations.items.create(id, items=[user("two"), user("three")])
    client.conversations.items.create(id, items=[user("four")])
    assert texts(client, id, order="asc") == ["one", "two", "three", "four"]
    assert texts(client, id, limit=1) == ["four", "three", "two", "one"]
    added_id = added.data[0].id or ""
    two: Any = client.conversations.items.retrieve(added_id, conversation_id=id)
    assert two.content[0].text == "two"
    client.conversations.items.delete(two.id, conversation_id=id)
    assert texts(client, id, order="asc") == ["one", "three", "four"]
    for call in (client.conversations.items.retrieve, client.conversations.items.delete):
        with pytest.raises(openai.NotFoundError, match=f"Item with id '{two.id}' not found"):
            call(two.id, conversation_id=id)
    with pytest.raises(openai.BadRequestError, match="maximum length 20"):
        client.conversations.items.create(id, items=[user("x")] * 21)
    assert len(texts(client, id)) == 3


def test_answers_in_conversations(client: openai.OpenAI) -> None:
    """What is asked and answered in a conversation stands in it, in the order of the requests."""
    id = client.conversations.create(items=[user("before")]).id
    for text in ("Hi", "More"):
        client.responses.create(model="m", input=text, conversation=id)
    client.conversations.items.create(id, items=[user("after")])
    expected = ["before", "Hi", "Hello", "More", "Bye", "after"]
    assert texts(client, id, order="asc") == expected
    other = client.conversations.create().id
    client.responses.create(model="m", input="Hi", conversation=other)
    assert texts(client, other, order="asc") == ["Hi", "Hello"]


# Stored answers


def completion(client: openai.OpenAI, text: str, **fields: Any) -> str:
    """The id of an answer of a model."""
    messages: Any = [{"role": "user", "content": text}]
    made: Any = client.chat.completions.create(model="m", messages=messages, **fields)
    id: str = made.id
    return id


def test_stored_completions(client: openai.OpenAI) -> None:
    """Those with `store` are shown, listed, changed and deleted; others are not kept."""
    id = completion(client, "Hi", store=True, metadata={"run": "1"})
    other = completion(client, "else", store=True, metadata={"run": "2"})
    unkept = completion(client, "third")
    stored = client.chat.completions.retrieve(id)
    assert (stored.choices[0].message.content, stored.metadata) == ("Hello", {"run": "1"})
    assert [one.id for one in client.chat.completions.list(limit=1)] == [id, other]
    assert [one.id for one in client.chat.completions.list(order="desc")] == [other, id]
    assert [one.id for one in client.chat.completions.list(metadata={"run": "2"})] == [other]
    assert list(client.chat.completions.list(model="x")) == []
    (message,) = client.chat.completions.messages.list(id)
    assert (message.role, message.content) == ("user", "Hi")
    assert client.chat.completions.update(id, metadata={"run": "3"}).metadata == {"run": "3"}
    assert client.chat.completions.retrieve(id).metadata == {"run": "3"}
    assert client.chat.completions.delete(id).deleted
    for gone in (id, unkept, "chatcmpl-unknown"):
        with pytest.raises(openai.NotFoundError, match="No such ChatCompletion object"):
            client.chat.completions.retrieve(gone)
    assert [one.id for one in client.chat.completions.list()] == [other]


# Vector stores


def upload(client: openai.OpenAI, name: str, text: str) -> str:
    """The id of a file."""
    return client.files.create(file=(name, text.encode()), purpose="assistants").id


def test_vector_stores(client: openai.OpenAI) -> None:
    """They are made, shown, listed, changed and deleted."""
    file = upload(client, "a.txt", "cats purr")
    one = client.vector_stores.create(name="one", file_ids=[file])
    two = client.vector_stores.create(name="two", metadata={"a": "b"})
    assert (one.file_counts.completed, one.usage_bytes, one.status) == (1, 9, "completed")
    assert [store.id for store in client.vector_stores.list(limit=1)] == [two.id, one.id]
    assert client.vector_stores.update(two.id, name="2").name == "2"
    shown = client.vector_stores.retrieve(two.id)
    assert (shown.name, shown.metadata) == ("2", {"a": "b"})
    assert client.vector_stores.delete(one.id).deleted
    assert [store.id for store in client.vector_stores.list()] == [two.id]
    with pytest.raises(openai.NotFoundError, match="No such VectorStore object"):
        client.vector_stores.retrieve(one.id)
    with pytest.raises(openai.NotFoundError, match="No such File object: file-x"):
        client.vector_stores.create(file_ids=["file-x"])


def test_files_of_vector_stores(client: openai.OpenAI) -> None:
    """Files are added alone or several at once, polled, changed and removed."""
    store = client.vector_stores.create()
    ids = [upload(client, f"{text}.txt", text) for text in ("one", "two", "three")]
    files = client.vector_stores.files
    polled = files.create_and_poll(ids[0], vector_store_id=store.id, attributes={"year": 2020})
    assert (polled.status, polled.attributes) == ("completed", {"year": 2020})
    batches = client.vector_stores.file_batches
    batch = batches.create_and_poll(store.id, file_ids=ids[1:])
    assert (batch.status, batch.file_counts.completed) == ("completed", 2)
    listed = batches.list_files(batch.id, vector_store_id=store.id)
    assert [file.id for file in listed] == [ids[2], ids[1]]
    assert [file.id for file in files.list(store.id, limit=2)] == ids[::-1]
    changed = files.update(ids[1], vector_store_id=store.id, attributes={"year": 2021})
    assert files.retrieve(ids[1], vector_store_id=store.id) == changed
    (content,) = files.content(ids[1], vector_store_id=store.id)
    assert content.text == "two"
    assert files.delete(ids[0], vector_store_id=store.id).deleted
    assert client.vector_stores.retrieve(store.id).file_counts.total == 2
    client.files.delete(ids[1])
    assert client.vector_stores.retrieve(store.id).file_counts.total == 2
    with pytest.raises(openai.NotFoundError, match="No such VectorStoreFile object"):
        files.retrieve(ids[0], vector_store_id=store.id)


def test_search(client: openai.OpenAI) -> None:
    """The files with the words of the query are found, those with most of them first; filters
    leave some out."""
    store = client.vector_stores.create().id
    for year, text in ((2020, "Cats purr."), (2021, "Dogs and cats sleep."), (2022, "Fish swim.")):
        id = upload(client, f"{year}.txt", text)
        client.vector_stores.files.create(store, file_id=id, attributes={"year": year})

    def found(**fields: Any) -> list[str]:
        return [one.filename for one in client.vector_stores.search(store, **fields)]

    assert found(query="when do CATS sleep") == ["2021.txt", "2020.txt"]
    assert found(query="cats sleep", max_num_results=1) == ["2021.txt"]
    since: Any = {"type": "lt", "key": "year", "value": 2021}
    assert found(query=["cats", "fish"], filters=since) == ["2020.txt"]
    either: Any = {"type": "or", "filters": [since, {**since, "type": "eq", "value": 2022}]}
    assert found(query=["cats", "fish"], filters=either) == ["2020.txt", "2022.txt"]
    assert found(query="cats sleep", ranking_options={"score_threshold": 0.9}) == ["2021.txt"]
    assert found(query="birds") == []


def test_pieces_of_long_files(client: openai.OpenAI) -> None:
    """A long file is cut into overlapping pieces, as the strategy says."""
    file = upload(client, "long.txt", " ".join(f"w{number}" for number in range(10)))
    store = client.vector_stores.create().id
    static: Any = {"max_chunk_size_tokens": 4, "chunk_overlap_tokens": 1}
    strategy: Any = {"type": "static", "static": static}
    client.vector_stores.files.create(store, file_id=file, chunking_strategy=strategy)
    (one, two) = client.vector_stores.search(store, query="w3")
    assert [piece.content[0].text for piece in (one, two)] == ["w0 w1 w2 w3", "w3 w4 w5 w6"]


# Uploads


def begin(client: openai.OpenAI, size: int) -> str:
    """The id of a new upload."""
    kind, purpose = "text/plain", "assistants"
    made = client.uploads.create(bytes=size, filename="u.txt", mime_type=kind, purpose=purpose)
    assert made.status == "pending"
    return made.id


def test_uploads(client: openai.OpenAI) -> None:
    """The parts become one file in the order that is asked for, which others can use."""
    id = begin(client, 8)
    parts = [client.uploads.parts.create(id, data=data).id for data in (b"cats", b"purr")]
    checksum = hashlib.md5(b"purrcats").hexdigest()
    done = client.uploads.complete(id, part_ids=parts[::-1], md5=checksum)
    assert done.status == "completed"
    assert done.file is not None
    assert client.files.content(done.file.id).read() == b"purrcats"
    assert [file.id for file in client.files.list()] == [done.file.id]
    store = client.vector_stores.create(file_ids=[done.file.id])
    assert store.usage_bytes == 8
    client.files.delete(done.file.id)
    assert list(client.files.list()) == []


def test_wrong_uploads(client: openai.OpenAI) -> None:
    """Unknown parts, other sizes and other checksums are refused; then nothing has changed."""
    id = begin(client, 4)
    part = client.uploads.parts.create(id, data=b"cats").id
    with pytest.raises(openai.NotFoundError, match="No such Upload Part object: part_x"):
        client.uploads.complete(id, part_ids=["part_x"])
    with pytest.raises(openai.BadRequestError, match="8 bytes, and the upload was created for 4"):
        client.uploads.complete(id, part_ids=[part, part])
    with pytest.raises(openai.BadRequestError, match="checksum"):
        client.uploads.complete(id, part_ids=[part], md5="0")
    assert client.uploads.cancel(id).status == "cancelled"
    with pytest.raises(openai.BadRequestError, match="has status cancelled"):
        client.uploads.parts.create(id, data=b"more")
    with pytest.raises(openai.NotFoundError, match="No such Upload object"):
        client.uploads.cancel("upload_x")


# All of them


def test_without_the_fallback() -> None:
    """Then one line says what would answer."""
    with (
        ServerThread(loads(SCENARIOS)) as plain,
        openai.OpenAI(base_url=f"{plain.url}/v1", api_key="k", max_retries=0) as client,
    ):
        calls: list[Any] = [
            client.conversations.create,
            client.vector_stores.list,
            client.chat.completions.list,
            lambda: client.uploads.cancel("upload_x"),
        ]
        for call in calls:
            with pytest.raises(openai.NotFoundError, match="--fallback auto would answer it"):
                call()


def test_sessions_of_their_own(servers: list[str]) -> None:
    """No session sees what another one made."""
    mine, theirs = (openai_client(f"{servers[0]}/s/{name}") for name in ("mine", "theirs"))
    with mine, theirs:
        made = mine.vector_stores.create()
        assert list(theirs.vector_stores.list()) == []
        with pytest.raises(openai.NotFoundError):
            theirs.vector_stores.retrieve(made.id)
