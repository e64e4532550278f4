"""Takes the pictures of docs/ui.md: `python -m tools.ui_pictures [FOLDER]`.

They show a real server, its requests those of a real agent (the OpenAI SDK), in Chromium.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tools.browser import Browser, missing, started
from tools.png_palette import with_palette
from tools.served import served

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SHIPPED = ("secret-numbers", "reasoning", "rate-limited", "tick-tock", "unicode", "multi-hop")
WEATHER = """\
scenario: weather
description: The weather of a city, from a tool.
match:
  user: How is the weather in
tools:
  - name: get_weather
    description: The weather of a city.
    parameters: {type: object, properties: {city: {type: string}}, required: [city]}
turns:
  - reply:
      - text: Let me look.
      - tool: get_weather
        id: call_oslo
        arguments: {city: Oslo}
  - request:
      results: {call_oslo: {equals: rain}}
    reply:
      - text: It rains in Oslo, so take an umbrella with you.
        split: words
        every: 30ms
"""
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
VIEWS = {
    "requests": ("#/requests", ".rows li"),
    "conversation": ("#/request/default/2?view=conversation", ".message.answer"),
    "stream": ("#/request/default/2?view=stream", ".part"),
    "why": ("#/request/default/{unmatched}?view=why", "#skeleton"),
    "scenarios": ("#/scenario/weather?api=chat&turn=1&play=once", ".part"),
}


def main(arguments: list[str]) -> int:
    """Takes all pictures, and prints their sizes."""
    if missing():
        print(f"no pictures: {missing()}", file=sys.stderr)
        return 2
    images = Path(arguments[0]) if arguments else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    with used() as (url, unmatched), started() as browser:
        for scheme in ("light", "dark"):
            browser.media(scheme=scheme)
            for name, (fragment, query) in VIEWS.items():
                address = f"{url}/_mockllm/ui{fragment.format(unmatched=unmatched)}"
                size = (1180, 600 if name == "requests" else 760)
                take(browser, address, query, size, images / f"ui-{name}-{scheme}.png")
        browser.media()
        phone = images / "ui-phone.png"
        take(browser, f"{url}/_mockllm/ui", ".rows li", (360, 640), phone)
    return 0


def take(browser: Browser, address: str, query: str, size: tuple[int, int], file: Path) -> None:
    """One picture, once the page shows what a selector finds."""
    from selenium.webdriver.support.wait import WebDriverWait

    browser.resize(*size)
    browser.visit(address)
    count = "return document.querySelectorAll(arguments[0]).length"
    wait = WebDriverWait(browser.driver, 15)
    wait.until(lambda _: browser.script(count, query))
    wait.until(lambda _: any(text and "0 of" not in text for text in browser.texts("output")))
    browser.picture(file)
    file.write_bytes(with_palette(file.read_bytes()))
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} KB")


@contextmanager
def used() -> Iterator[tuple[str, int]]:
    """A server that an agent has used: its URL, and the number of an unmatched request."""
    with tempfile.TemporaryDirectory() as folder:
        scenarios = Path(folder) / "scenarios"
        scenarios.mkdir()
        (scenarios / "weather.yaml").write_text(WEATHER, encoding="utf-8")
        for name in SHIPPED:
            text = (ROOT / "scenarios" / f"{name}.yaml").read_text("utf-8")
            (scenarios / f"{name}.yaml").write_text(text, encoding="utf-8")
        with served("scenarios", folder=Path(folder)) as url:
            yield url, use(url)


def use(url: str) -> int:
    """Runs an agent several times; the number of the request that nothing matched."""
    import openai

    with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
        run(client, "How is the weather in Oslo?")
        run(client, "How is the weather in Oslo?", result="snow")
        for text in ("Please play the clock", "Please play the clock"):
            run(client, text)
        run(client, "What's the wether in Bergen?")
    for session in ("test_login", "test_search"):
        base = f"{url}/s/{session}/v1"
        with openai.OpenAI(base_url=base, api_key="any", max_retries=0) as client:
            run(client, "How is the weather in Oslo?")
            leave(client)
    return 7


def run(client: Any, text: str, result: str = "rain") -> None:
    """An agent that streams answers, and answers calls until there are none, or an error."""
    import openai

    messages: list[Any] = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": text},
    ]
    with suppress(openai.APIStatusError):
        while True:
            with client.chat.completions.stream(
                model="gpt-5", messages=messages, tools=[TOOL]
            ) as stream:
                answer = stream.get_final_completion().choices[0].message
            if not answer.tool_calls:
                return
            messages.append(answer.model_dump(exclude_none=True, exclude={"parsed"}))
            for call in answer.tool_calls:
                content = {"role": "tool", "tool_call_id": call.id, "content": result}
                messages.append(content)


def leave(client: Any) -> None:
    """A client that goes away in the middle of an answer."""
    call = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    stream = client.chat.completions.create(
        model="gpt-5",
        stream=True,
        messages=[
            {"role": "user", "content": "How is the weather in Oslo?"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "call_oslo", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "call_oslo", "content": "rain"},
        ],
    )
    next(iter(stream))
    stream.close()
    time.sleep(0.5)  # until the server has noticed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
