"""What a developer sees and does in the live page, while a real agent runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import httpx
import openai
import pytest
from selenium.webdriver.common.keys import Keys
from websockets.sync.client import connect

from mockllm.wire.protocols import PROTOCOLS
from tests.checking.conversations.mcp.agents import Agent, scenario
from tests.checking.conversations.test_changes_of_all_apis import (
    CHANGES,
    Recorded,
    asked,
    unchanged,
)
from tests.conformance.site.test_in_browser import CONTRAST
from tests.serve.ui.browser.page import ROWS, Page
from tests.timeouts import GIVE_UP
from tools.browser import Browser, missing, started
from tools.served import served

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

WEATHER = """\
scenario: weather
description: One call, then the answer.
match: {user: weather}
tools:
  - name: get_weather
    parameters: {type: object, properties: {city: {type: string}}, required: [city]}
turns:
  - reply:
      - text: Let me look.
      - tool: get_weather
        id: call_1
        arguments: {city: Oslo}
  - reply:
      - text: It rains in Oslo.
        split: words
        every: 2ms
"""
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("scenarios")
    (made / "weather.yaml").write_text(WEATHER, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(str(folder), "--reload") as found:
        yield found


@pytest.fixture
def page(chromium: Browser, url: str) -> Iterator[Page]:
    """The page of the server of this module, without requests. No test leaves an error there."""
    control = f"{url}/_mockllm/sessions"
    for session in httpx.get(control, timeout=GIVE_UP).json()["sessions"]:
        if session["session"] != "default":
            httpx.delete(f"{control}/{session['session']}", timeout=GIVE_UP)
    httpx.post(f"{control}/default/reset", timeout=GIVE_UP)
    chromium.media()
    found = Page(chromium, url)
    found.errors()
    yield found
    assert found.errors() == []


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-1", max_retries=0) as made:
        yield made


PARTS = "return document.querySelector('.parts').textContent"
"""The text of all parts of a stream: a browser does not draw those that are far from the window."""


def run_agent(client: openai.OpenAI, text: str = "How is the weather?") -> str:
    """Streams answers and answers their calls, until one has no call; its text."""
    messages: list[dict] = [{"role": "user", "content": text}]
    while True:
        with client.chat.completions.stream(
            model="gpt-5", messages=messages, tools=[TOOL]
        ) as stream:
            answer = stream.get_final_completion().choices[0].message
        if not answer.tool_calls:
            return answer.content or ""
        messages.append(answer.model_dump(exclude_none=True, exclude={"parsed"}))
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": "rain"}
            for call in answer.tool_calls
        ]


def test_a_running_agent_is_followed(page: Page, client: openai.OpenAI):
    """Its requests appear by themselves; one opens with conversation, stream, body and headers."""
    page.open()
    assert run_agent(client) == "It rains in Oslo."
    page.wait(ROWS, "turn 2")
    rows = page.browser.texts(ROWS)
    assert len(rows) == 2
    assert all("played" in row and "chat" in row and "weather" in row for row in rows)
    page.until(lambda: "2 of 2 requests" in page.browser.texts("output"))

    page.click(ROWS + " a")  # the newest
    page.wait("#detail h2", "default #2")
    roles = page.wait(".message h3")
    assert roles == ["user", "assistant", "tool", "answer"]
    assert "How is the weather?" in page.browser.texts(".message")[0]
    assert "get_weather" in page.browser.texts(".message")[1]
    assert "It rains in Oslo." in page.browser.texts(".message.answer")[0]

    page.press("2")
    assert page.address == "#/request/default/2?view=stream"
    parts = page.wait(".part")
    assert any("due" in part and "left" in part for part in parts)
    assert "LF" in page.browser.texts(".part .end")
    assert "[DONE]" in page.browser.script(PARTS)
    assert "It rains in Oslo." in page.browser.texts(".sum")[0]

    page.go("#/request/default/2?view=body")
    assert "call_1" in page.wait(".json")[0]
    page.go("#/request/default/2?view=headers")
    headers = page.wait("#panel .headers")[0]
    assert "masked" in headers
    assert "sk-1" not in headers
    assert "text/event-stream" in "".join(page.browser.texts("#panel .headers"))


def test_the_rows_stand_in_the_document_as_on_the_screen(page: Page, client: openai.OpenAI):
    """Whoever listens to the page hears the newest request first, however late it came."""
    page.open()
    for count in (2, 4):
        run_agent(client)
        page.until(lambda count=count: len(page.browser.texts(ROWS)) == count)
    keys = "return [...document.querySelectorAll('.rows li')].map((row) => row.dataset.key)"
    assert page.browser.script(keys) == [f"default {number}" for number in (4, 3, 2, 1)]


def test_from_a_mismatch_to_an_answer(page: Page, client: openai.OpenAI, folder: Path):
    """What did not match is explained; the scenario that the page gives answers the request."""
    page.open()
    with pytest.raises(openai.NotFoundError):
        run_agent(client, "Tell me a joke")
    (row,) = page.wait(ROWS, "unmatched")
    assert row.index("Tell me a joke") < row.index("No scenario answers")
    page.wait(".sessions .bad", "1 unanswered")
    page.click(ROWS + " a")
    assert "weather" in page.wait("#panel .nearest")[0]
    unmet = page.wait(".conditions .unmet")[0]
    assert "not met" in unmet
    assert "weather" in unmet
    assert "Tell me a joke" in unmet
    page.browser.script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click("#panel .copy")
    skeleton = page.until(lambda: page.browser.script("return window.copied"))
    assert skeleton == page.browser.script("return document.getElementById('skeleton').textContent")

    (folder / "unmatched.yaml").write_text(skeleton, encoding="utf-8")
    page.wait("#about", "2 scenarios")
    assert run_agent(client, "Tell me a joke")
    page.wait(ROWS, "played")
    page.click("#views a[href='#/scenarios']")
    assert len(page.wait(".names li")) == 2
    assert page.wait(".names li", "played")
    (folder / "unmatched.yaml").unlink()
    page.wait("#about", "1 scenario")


def test_an_empty_page_gives_the_addresses_to_copy(page: Page):
    """Each base URL has a button that copies it."""
    page.open()
    page.wait(".empty", "No request yet")
    page.browser.script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click(".empty .copy[aria-label='Copy the URL for chat']")
    copied = page.until(lambda: page.browser.script("return window.copied"))
    assert copied == f"{page.url}/v1"


def test_a_file_that_is_broken_shows_its_problem(page: Page, folder: Path):
    """With its place, until it is mended; the scenarios from before are still served."""
    page.open("#/scenarios")
    page.wait(".names li", "weather")
    (folder / "broken.yaml").write_text("scenario: broken\nturns: 3\n", encoding="utf-8")
    shown = page.wait("#problems", "broken.yaml:2")
    assert "turns" in shown[0]
    assert page.browser.texts(".names li b") == ["weather"]
    (folder / "broken.yaml").unlink()
    page.gone("#problems")


def test_a_scenario_is_shown_and_played(page: Page):
    """Its text with line numbers, its stream over an API, a command and a test that call it."""
    page.open("#/scenario/weather?api=anthropic&turn=1")
    assert page.wait(".src")[0].split() == ["1", "scenario:", "weather"]
    page.wait("#curl-text", "curl")
    page.wait("#test-text", "mockllm_session")
    page.click(".play-once")
    page.until(lambda: "play=once" in page.address)
    page.until(lambda: "message_start" in page.browser.script(PARTS))
    page.click(".play-time")
    page.wait(".playing", "played")
    page.wait(".sum", "It rains in Oslo.")


def send(url: str, count: int, sessions: int = 1, **fields: object) -> None:
    """Sends requests that are answered, spread over sessions, on one connection."""
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "weather"}], **fields}
    with httpx.Client(base_url=url, timeout=GIVE_UP) as http:
        for number in range(count):
            prefix = f"/s/many-{number % sessions}" if sessions > 1 else ""
            http.post(f"{prefix}/v1/chat/completions", json=body)


def test_the_keyboard_is_enough(page: Page, url: str):
    """Rows are chosen, opened and closed, texts searched, the list paused, all without a mouse."""
    send(url, 4)
    page.open()
    page.until(lambda: len(page.browser.texts(ROWS)) == 4)
    page.press("j", "j")
    assert "#3" in page.browser.script("return document.activeElement.hash").replace("/", "#")
    page.press(Keys.ENTER)
    page.wait("#detail h2", "default #3")
    page.press("j")
    page.wait("#detail h2", "default #2")
    page.press("5")
    page.wait(".tabs a[aria-current]", "Headers")
    page.press(Keys.ESCAPE)
    page.gone("#detail")
    assert page.address == "#/requests"
    assert "played" in page.focused
    page.press("/")
    page.press("unmatched")
    page.wait(".empty", "No request fits")
    assert page.address == "#/requests?text=unmatched"
    page.press(Keys.ESCAPE, Keys.ESCAPE)
    page.until(lambda: len(page.browser.texts(ROWS)) == 4)
    page.press("p")
    page.wait(".pause", "Go on")
    send(url, 1)
    page.wait(".pause", "1 new")
    assert len(page.browser.texts(ROWS)) == 4
    page.press("p")
    page.until(lambda: len(page.browser.texts(ROWS)) == 5)
    page.press(Keys.TAB)
    assert page.browser.script("return document.activeElement !== document.body")


def test_why_a_scenario_answered(page: Page, client: openai.OpenAI, folder: Path):
    """Which of its conditions held, and which other scenarios came near, each with the condition
    that did not hold, or why it had to give way."""
    page.open()
    other = "scenario: {}\nmatch: {{user: {}}}\nturns: [{{reply: Hi}}]\n"
    files = {"paris": "{all: [weather, Paris]}", "rain": "{any: [weather, rain]}"}
    for name, user in files.items():
        (folder / f"{name}.yaml").write_text(other.format(name, user), encoding="utf-8")
    page.wait("#about", "3 scenarios")
    run_agent(client, "the weather in Paris")
    page.wait(ROWS, "paris")
    page.go("#/request/default/1?view=why")
    own, *others = page.wait("#panel .nearest")
    assert "paris" in own
    assert "1 of 1 condition met" in own
    assert "✓ met" in own
    assert len(others) == 2
    notes = " ".join(page.browser.texts("#panel > .note"))
    assert "fewer conditions: 1, and not 2" in notes
    assert page.browser.script(CONTRAST) == {}
    for name in files:
        (folder / f"{name}.yaml").unlink()
    page.wait("#about", "1 scenario")


def test_a_search_leads_to_its_rows(page: Page, url: str):
    """From the search box, arrows and Enter reach the rows that it found; Escape goes to them and
    keeps the search, a second one ends it. So in the list of scenarios."""
    send(url, 3)
    httpx.get(f"{url}/v1/nothing-here", timeout=GIVE_UP)
    page.open()
    page.until(lambda: len(page.browser.texts(ROWS)) == 4)
    page.press("/", "weather", Keys.ENTER)
    page.wait("#detail h2", "default #3")
    assert "text=weather" in page.address
    page.press(Keys.ESCAPE, "/", Keys.ARROW_DOWN)
    assert "#3" in page.browser.script(FOCUSED_HREF)
    page.press(Keys.ARROW_DOWN)
    assert "#2" in page.browser.script(FOCUSED_HREF)
    page.press("/", Keys.ESCAPE)
    assert "#2" in page.browser.script(FOCUSED_HREF)
    assert page.address == "#/requests?text=weather"
    page.press(Keys.ESCAPE)
    page.until(lambda: len(page.browser.texts(ROWS)) == 4)
    page.go("#/scenarios")
    assert "weather.yaml:1" in page.wait(".names .file")
    page.press("/", "weather", Keys.ESCAPE)
    assert page.browser.script("return document.activeElement.hash").startswith("#/scenario/")
    page.press(Keys.ESCAPE)
    assert page.address == "#/scenarios"
    page.press("/", "weath", Keys.ENTER)
    page.wait("#detail h2", "weather")


FOCUSED_HREF = "return document.activeElement.hash.split('?')[0].replace('default/', '#')"


def test_what_was_cut_off_and_what_has_no_answer_are_found(page: Page, url: str):
    """An answer that a fault struck is not shown as one that was played; a filter finds it, and one
    all that has no answer, which the number beside the session opens, too."""
    send(url, 1)
    httpx.get(f"{url}/v1/nothing-here", timeout=GIVE_UP)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.post(
            f"{url}/v1/chat/completions",
            json={
                "model": "m",
                "messages": [{"role": "user", "content": "weather"}],
                "stream": True,
            },
            headers={"x-mockllm-fault": "cut:after=1 events"},
            timeout=GIVE_UP,
        )
    page.open("#/requests?outcome=cut")
    (row,) = page.wait(ROWS, "fault struck")
    assert "played" not in row
    page.go("#/requests")
    page.until(lambda: len(page.browser.texts(ROWS)) == 3)
    page.click(".sessions .bad")
    page.until(lambda: len(page.browser.texts(ROWS)) == 1)
    assert page.address == "#/requests?session=default&outcome=unanswered"
    assert "nothing-here" in page.browser.texts(ROWS)[0]


def test_a_request_is_not_cut_beside_an_empty_column(page: Page, url: str):
    """Where names of scenarios are short, the request gets their room: 60 letters in a window of
    usual width."""
    said = "weather " * 8
    send(url, 1, messages=[{"role": "user", "content": said}])
    for width in (360, 768, 1440):
        page.open(width=width)
        page.wait(ROWS)
        cut = page.browser.script(
            "const one = document.querySelector('.rows .what');"
            "return one.scrollWidth > one.clientWidth"
        )
        assert cut == (width == 360)


def test_the_turn_of_a_row_can_be_read(page: Page, client: openai.OpenAI, url: str):
    """A short scenario's turn is whole on a phone, and with its session in a usual window."""
    run_agent(client)
    other = openai.OpenAI(base_url=f"{url}/s/test_login/v1", api_key="any", max_retries=0)
    run_agent(other)
    ends = (
        "const turn = document.querySelector('.rows .turn');"
        "const last = turn.querySelector(arguments[0]) || turn.firstChild;"
        "const range = document.createRange(); range.selectNodeContents(last);"
        "return range.getBoundingClientRect().right <= turn.getBoundingClientRect().right + 1"
    )
    for width, last in ((360, "none"), (1280, ".in-session")):
        page.open(width=width)
        page.wait(ROWS)
        assert page.browser.script(ends, last), width
    other.close()


def test_filters_are_in_the_address(page: Page, url: str):
    """An address shows what its writer saw; Clear hides what is there, and can be undone."""
    send(url, 2)
    httpx.get(f"{url}/v1/nothing-here", timeout=GIVE_UP)
    page.open("#/requests?outcome=unknown%20route")
    assert len(page.wait(ROWS)) == 1
    page.go("#/requests?api=chat&scenario=weather")
    page.until(lambda: len(page.browser.texts(ROWS)) == 2)
    page.click(".clear")
    page.wait(".empty", "Cleared")
    page.click(".clear")
    page.until(lambda: len(page.browser.texts(ROWS)) == 2)


EVIL = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "'\"><iframe srcdoc='<script>alert(1)</script>'>",
    "{{constructor.constructor('alert(1)')()}}",
    "\u202ereversed\u202c \u2066isolated\u2069 \u200bhidden \U000e0041tag",
    "__proto__ constructor hasOwnProperty",
    "\x00\x1b[31m\r\n\x07",
)
LOADED = """
const made = 'img, iframe, svg, script:not([src]), object, embed, [onerror]';
return [...document.querySelectorAll(made)].map((one) => one.outerHTML)
"""


def evil_request(text: str) -> dict:
    """A request with a text wherever a client may write one."""
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
    return {
        "model": text,
        "user": text,
        "__proto__": {text: text},
        "tools": [{"type": "function", "function": {"name": "get_weather", "description": text}}],
        "messages": [
            {"role": "system", "content": text},
            {"role": "user", "content": f"weather {text}"},
            {"role": "assistant", "content": text, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": text, "content": text * 200},
            {"role": "user", "content": f"weather {text}"},
        ],
    }


def test_what_clients_send_is_text(chromium: Browser, tmp_path: Path):
    """In every field: no element, no script, no dialog, no error, no character that hides."""
    text = " ".join(EVIL)
    quoted = json.dumps(text).replace("\\udb40\\udc41", "\\U000e0041")  # as YAML writes it
    scenario = WEATHER.replace("One call, then the answer.", json.dumps(" ".join(EVIL[:-3])))
    scenario = scenario.replace("It rains in Oslo.", quoted)
    (tmp_path / "weather.yaml").write_text(scenario, encoding="utf-8")
    (tmp_path / "any.yaml").write_text(
        f"scenario: any\nmatch: {{user: evil}}\nturns:\n  - reply: [{{text: {quoted}}}]\n",
        encoding="utf-8",
    )
    with served(str(tmp_path), "--lenient") as url:
        with httpx.Client(base_url=url, timeout=GIVE_UP) as http:
            path = "/v1/chat/completions"
            headers = {"x-evil": "<img src=x onerror=alert(1)>"}
            for one in (text, *EVIL):
                http.post(path, json=evil_request(one), headers=headers)
            http.post(path, json={"messages": [{"role": "user", "content": f"evil {text}"}]})
            http.post(path, json={"messages": [{"role": "user", "content": text}]})
            http.get("/v1/<img src=x onerror=alert(1)>?q=\u202e")
            entries = http.get("/_mockllm/journal").json()["exchanges"]
        page = Page(chromium, url)
        page.errors()
        page.open()
        page.until(lambda: len(page.browser.texts(ROWS)) == len(entries))
        addresses = ["#/requests", "#/scenario/any?play=once", "#/scenario/weather"]
        addresses += [
            f"#/request/default/{entry['number']}?view={view}"
            for entry in (entries[0], *entries[-3:])
            for view in ("conversation", "stream", "why", "body", "headers")
        ]
        addresses += [f"#/requests?text={EVIL[0]}&session={EVIL[4]}", f"#/{EVIL[1]}/{EVIL[0]}"]
        for address in addresses:
            page.go(address)
            page.gone("#detail .loading")
            assert page.browser.script(LOADED) == [], address
            shown = page.browser.script("return document.body.innerText + document.title")
            assert not set(shown) & set("\u202e\u2066\u200b\x1b\U000e0041"), address
        page.go("#/request/default/1?view=conversation")
        assert "\\u202e" in "".join(page.wait(".message .escape"))
        assert page.errors() == []


def test_ten_thousand_requests_need_few_rows(chromium: Browser, tmp_path: Path):
    """The page makes rows for what is visible only, wherever one scrolls."""
    (tmp_path / "weather.yaml").write_text(WEATHER, encoding="utf-8")
    with served(str(tmp_path)) as url:
        many(url, 10_000)
        page = Page(chromium, url)
        page.open()
        page.until(lambda: "10,000 of 10,000 requests" in page.browser.texts("output"))
        count = "return document.querySelectorAll('.rows li').length"
        assert 10 < page.browser.script(count) < 80
        page.browser.script("document.querySelector('.window').scrollTop = 200000")
        page.press(Keys.END)
        page.wait(ROWS, "many-0 #1")
        assert 10 < page.browser.script(count) < 80
        page.go("#/requests?session=many-3")
        page.until(lambda: "1,000 of 10,000 requests" in page.browser.texts("output"))


def many(url: str, count: int) -> None:
    """Sends many requests over few connections, without waiting for each answer."""
    import socket

    place = httpx.URL(url)
    body = b'{"model":"m","messages":[{"role":"user","content":"weather"}]}'
    for session in range(10):
        head = (
            f"POST /s/many-{session}/v1/chat/completions HTTP/1.1\r\nHost: {place.host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        ).encode()
        requests = [head + b"\r\n" + body] * (count // 10 - 1)
        last = head + b"Connection: close\r\n\r\n" + body
        with socket.create_connection((place.host, place.port), GIVE_UP) as connection:
            connection.settimeout(GIVE_UP)
            for start in range(0, len(requests), 50):
                connection.sendall(b"".join(requests[start : start + 50]))
                seen = 0
                while seen < len(requests[start : start + 50]):
                    seen += connection.recv(65536).count(b"HTTP/1.1 200")
            connection.sendall(last)
            while connection.recv(65536):
                pass


VIEWS = (
    "#/requests",
    "#/request/default/1?view=conversation",
    "#/request/default/1?view=stream",
    "#/request/default/1?view=body",
    "#/request/default/1?view=headers",
    "#/request/default/2?view=why",
    "#/scenarios",
    "#/scenario/weather?play=once",
)


def test_all_views_fit_and_can_be_read(page: Page, url: str):
    """At 360 px nothing scrolls sideways; texts have enough contrast in both schemes; tables have
    heads, and what can be pressed has a name."""
    send(url, 1)
    send(url, 1, messages=[{"role": "user", "content": "x" * 500}])
    for width, scheme in ((360, "light"), (1280, "dark")):
        page.browser.media(scheme=scheme)
        page.open(width=width)
        page.wait_for(ROWS)
        for view in VIEWS:
            page.go(view)
            page.gone("#detail .loading")
            assert page.browser.script("return document.documentElement.scrollWidth") <= width, view
            assert page.browser.script(CONTRAST) == {}, (view, scheme)
            assert page.browser.script(
                "return [...document.querySelectorAll('table')].every((one) => one.caption"
                " && [...one.querySelectorAll('th')].every((head) => head.scope))"
            ), view
            assert page.browser.script(NAMELESS) == [], view


NAMELESS = """
return [...document.querySelectorAll('a, button, select, input')]
  .filter((one) => one.offsetParent !== null && !one.closest('[aria-hidden]'))
  .filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim()))
  .map((one) => one.outerHTML)
"""


def test_a_connection_has_two_columns_on_one_axis(page: Page, url: str):
    """The client's messages are on the left, the service's on the right, later ones below; at every
    width nothing scrolls sideways."""
    said = {"type": "response.create", "model": "m", "input": "weather"}
    with connect(url.replace("http", "ws", 1) + "/v1/responses", proxy=None) as socket:
        for _ in range(2):
            socket.send(json.dumps(said))
            while "response.completed" not in str(socket.recv(GIVE_UP)):
                pass
    for width, scheme in ((360, "light"), (768, "dark"), (1280, "light")):
        page.browser.media(scheme=scheme)
        page.open("#/request/default/1?view=socket", width=width)
        page.wait("#socket .own .kind", "response.completed")
        boxes = page.browser.script(PLACES)
        assert [side for side, _, _ in boxes[:2]] == ["item client", "item service"]
        assert boxes[0][1] < boxes[1][1]
        assert {side for side, _, _ in boxes} == {"item client", "item service"}
        assert len({(side, left) for side, left, _ in boxes}) == 2
        assert [top for _, _, top in boxes] == sorted(top for _, _, top in boxes)
        assert page.browser.script("return document.documentElement.scrollWidth") <= width
        assert page.browser.script(CONTRAST) == {}
        assert page.browser.script(NAMELESS) == []


PLACES = """
return [...document.querySelectorAll('#socket .item')].map((one) => {
  const box = one.querySelector('.card').getBoundingClientRect();
  return [one.className, box.left, box.top];
})
"""


def test_a_server_that_is_gone_is_reported(chromium: Browser, tmp_path: Path):
    """The page shows that it is not connected, and connects by itself when there is one again; what
    the first one answered stays, greyed, below the time at which the second one began."""
    (tmp_path / "weather.yaml").write_text(WEATHER, encoding="utf-8")
    page = Page(chromium, "")
    with ExitStack() as first:
        page.url = first.enter_context(served(str(tmp_path)))
        send(page.url, 2)
        page.open()
        page.until(lambda: len(page.browser.texts(ROWS)) == 2)
    page.wait("#connection.lost", "not connected")
    with served(str(tmp_path), port=httpx.URL(page.url).port or 0):
        page.wait("#connection.live")
        page.wait(".began", "the server began again at")
        assert len(page.browser.texts(".rows .before")) == 2
        send(page.url, 1)
        page.until(lambda: len(page.browser.texts(ROWS)) == 4)
        new, line, *old = page.browser.texts(ROWS)
        assert "weather" in new
        assert "began again" in line
        assert len(old) == 2
        assert page.browser.script(CONTRAST) == {}
        page.press("j", "j", "j", Keys.ENTER)
        status = "return document.getElementById('status').textContent"
        page.until(lambda: "no more" in page.browser.script(status))
        assert not page.browser.texts("#detail")


def test_without_the_page(tmp_path: Path):
    """`--no-ui` answers its routes with an error that names the option."""
    (tmp_path / "weather.yaml").write_text(WEATHER, encoding="utf-8")
    with served(str(tmp_path), "--no-ui") as url:
        for path in ("ui", "ui/main.js", "ui/events", "ui/scenarios"):
            answer = httpx.get(f"{url}/_mockllm/{path}", timeout=GIVE_UP)
            assert answer.status_code == 404
            assert "--no-ui" in answer.text


def test_a_recording_is_followed(chromium: Browser, tmp_path: Path):
    """What is written where appears while a real service (here: another server) answers."""
    (tmp_path / "weather.yaml").write_text(WEATHER, encoding="utf-8")
    recordings = tmp_path / "recorded"
    recordings.mkdir()
    upstream = served(str(tmp_path / "weather.yaml"))
    with (
        upstream as real,
        served(str(recordings), "--record", "new_episodes", "--upstream", f"chat={real}") as url,
    ):
        page = Page(chromium, url)
        page.errors()
        page.open("#/recording")
        page.wait("#views a", "Recording")
        assert recordings.name in page.wait("#detail .facts")[0]
        send(url, 1, stream=True)
        row = page.wait(".recorded tbody tr")[0]
        assert "recorded" in row
        page.go("#/requests")
        page.wait(ROWS, "forwarded")
        assert page.errors() == []


def test_another_request_than_was_recorded(chromium: Browser, tmp_path: Path):
    """A mark in the list; both requests are side by side, with what only one of them has."""
    recorded = Recorded(tmp_path, asked(PROTOCOLS["chat"], unchanged))
    sent = asked(PROTOCOLS["chat"], CHANGES["system prompt"][0])[0]
    with served(str(recorded.folder)) as url:
        page = Page(chromium, url)
        page.open()
        httpx.post(f"{url}/v1/chat/completions", content=sent.request_body, timeout=GIVE_UP)
        page.wait(ROWS, "Δ")
        page.click(f"{ROWS} a")
        page.click("[data-view=why]")
        assert page.wait("#changes li") == ['messages[0].content: "Be kind." → "Be evil."']
        assert page.browser.texts(".beside th") == ["recorded", "sent"]
        (changed,) = page.browser.texts(".beside .other")
        assert "kind" in changed
        assert "evil" in changed
        assert [page.browser.texts(f".beside {each}") for each in ("del", "ins")] == [
            ["only recorded:\nkind"],
            ["only sent:\nevil"],
        ]
        assert page.errors() == []


def test_a_line_leads_from_a_call_to_its_tool_and_to_the_result(chromium: Browser, tmp_path: Path):
    """In each of the three requests, as links to the others."""
    (tmp_path / "trip.yaml").write_text(scenario(["Oslo", "Slow"]), encoding="utf-8")
    with served(str(tmp_path)) as url, httpx.Client(base_url=url, timeout=GIVE_UP) as http:
        Agent(SimpleNamespace(http=http)).run()
        page = Page(chromium, url)
        page.open()
        page.wait(ROWS, "tools/call weather.get")
        page.go("#/request/default/3")
        lines = page.wait("#calls li", "result in request 7")
        assert [re.sub(r"\(.+?\)", "()", one) for one in lines] == [
            "tool weather.get id call_1 → operation 4 () → result in request 7",
            "tool weather.get id call_2 → operation 5 () → operation 6 () → result in request 7",
        ]
        page.click("#calls a[href*='/5']")
        page.wait("#request-title", "#5")
        assert chromium.texts(".tabs a") == ["Stream", "Body", "Headers"]
        assert chromium.texts(".about a") == ["mcp:weather · entry 7"]
        page.click("#calls a[href*='/7']")
        page.wait("#request-title", "#7")
        page.click("#calls a[href*='/3']")
        page.wait("#request-title", "#3")
        assert page.errors() == []
