"""The dates of imported recordings."""

import json

from mockllm.record.importers.batch import import_files
from mockllm.record.recording.store.ages import MaxAge, ages
from mockllm.record.recording.store.folder import Folder

NOW = 1_790_000_000.0
URL = "https://api.openai.com/v1/chat/completions"
BODY = json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": {}}]})


def request(text):
    """The body of a request of Chat."""
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})


def cassette(text, headers=None, **dated):
    """A cassette of VCR with one exchange."""
    sent = {"method": "POST", "uri": URL, "headers": {}, "body": request(text)}
    answer = {"status": {"code": 200}, "headers": headers or {}, "body": {"string": BODY}}
    return {"version": 1, "interactions": [{"request": sent, "response": answer, **dated}]}


def archive(text):
    """An HTTP archive with one exchange."""
    answer = {"status": 200, "headers": [], "content": {"text": BODY}}
    sent = {"method": "POST", "url": URL, "headers": [], "postData": {"text": request(text)}}
    began = "2026-01-02T03:04:05.500Z"
    return {"log": {"entries": [{"startedDateTime": began, "request": sent, "response": answer}]}}


def test_each_recording_holds_the_date_that_its_file_has(tmp_path):
    """That of the entry, or of the answer's header; one whose date nothing says is reported."""
    paths = []
    for name, value in (
        ("entry.json", cassette("entry", recorded_at="2026-01-02T03:04:05+00:00")),
        ("header.json", cassette("header", {"date": ["Fri, 02 Jan 2026 03:04:05 GMT"]})),
        ("archive.har", archive("archive")),
        ("nothing.json", cassette("nothing")),
    ):
        paths.append(tmp_path / name)
        paths[-1].write_text(json.dumps(value))
    folder = Folder(tmp_path / "recorded")
    import_files(paths, folder)
    found = ages(folder.scenarios(), MaxAge(30), NOW)
    old = {file.rpartition("/")[2].partition(".")[0] for file, _ in found.too_old}
    assert old == {"entry", "header", "archive"}
    assert all(text.startswith("was recorded on 2026-01-02, ") for _, text in found.too_old)
    assert [file.rpartition("/")[2] for file in found.undated] == ["nothing.1.jsonl"]
