"""How old recordings are."""

import json

import pytest

from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import recorded_at
from mockllm.record.recording.store.ages import MaxAge, ages, read_max_age
from tests.cases import for_all
from tests.conformance.drift.service import exchange, record

URL = "https://api.openai.com/v1/chat/completions"
NOW = 1_790_000_000.0
DAY = 86400.0


def test_ages_are_written_in_days_or_weeks():
    """With `:error` an older recording is an error."""
    assert read_max_age("30d") == MaxAge(30)
    assert read_max_age(" 4w:error ") == MaxAge(28, is_error=True)
    for text in ("", "30", "d", "-1d", "1.5d", "30d:warn", "30 d"):
        with pytest.raises(ValueError, match="is no age such as 30d"):
            read_max_age(text)


def chat(text, **fields):
    """An exchange of Chat whose answer has further fields."""
    message = {"role": "assistant", "content": "Hi"}
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": message}], **fields}
    request = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return exchange(
        URL, request, (200, "application/json", json.dumps(body)), at=fields.get("at", 0)
    )


def test_the_date_is_that_of_the_tape_or_of_the_answer(tmp_path):
    """What a recorder wrote, else the header, else what the service says; else it is not known."""
    folder = tmp_path / "recorded"
    dated = chat("by the service", created=int(NOW - 40 * DAY))
    record(folder, chat("new", at=NOW - 2 * DAY), chat("old", at=NOW - 50 * DAY), dated, chat("?"))
    found = ages(load([folder]), MaxAge(30), NOW)
    assert {file.rpartition("/")[2] for file, _ in found.too_old} == {
        "old.1.jsonl",
        "by-the-service.1.jsonl",
    }
    assert len(found.undated) == 1
    (sentence,) = [text for file, text in found.too_old if file.endswith("old.1.jsonl")]
    assert sentence.startswith("was recorded on 2026-08-02, 50 days ago; at most 30 are allowed.")


@for_all(
    ("url", "body", "expected"),
    [
        (URL, {"created": 1_700_000_000}, 1_700_000_000),
        ("https://h/v1/responses", {"created_at": 1_700_000_000.0}, 1_700_000_000),
        ("https://h/api/chat", {"created_at": "2023-11-14T22:13:20.123456789Z"}, 1_700_000_000),
        ("https://h/v1/models/m:generateContent", {"createTime": "2023-11-14T22:13:20Z"}, 1.7e9),
        (URL, {"created": 0}, None),
        (URL, {"created": "yesterday"}, None),
        (URL, {"created": 10**300}, None),
    ],
)
def test_what_services_date(url, body, expected):
    """Their own fields; what is no time is none."""
    found = recorded_at(exchange(url, {}, (200, "application/json", json.dumps(body)), at=0.0))
    assert found == expected or (found is not None and int(found) == expected)
