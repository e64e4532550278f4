"""The format of a file, and the files of a folder."""

import pytest

from mockllm.core.errors import UsageError
from mockllm.record.importers.file_formats import detect, files

KINDS = {
    "a.yaml": ("version: 1\ninteractions: []\n", "vcr"),
    "b.yml": ("# recorded\ninteractions : []\n", "vcr"),
    "c.json": ('\ufeff{"interactions": []}', "vcr"),
    "d.yaml": ("http_interactions: []\n", "vcr"),
    "e.har": ('{"log": {"entries": []}}', "har"),
    "f.json": ('{"log": {"entries": []}}', "har"),
    "g.json": ('{"fixtures": []}', "aimock"),
    "h.json": ('{"agui": {"fixtures": []}}', "aimock"),
    "i.txt": ("data: {}\n\n", "sse"),
    "j.sse": ("\ufeff: hello\n\n", "sse"),
    "k.txt": ("\nevent: x\ndata: {}\n\n", "sse"),
    "l.http": ("HTTP/2 200\ncontent-type: x\n\n", "sse"),
    "m.sse": ('{"choices": []}', "sse"),
    "n.json": ('{"choices": []}', None),
    "o.yaml": ("scenario: a\nturns: []\n", None),
    "p.txt": ("", None),
    "q.flows": ("20:7:version;2:21#4:type;4:http;}", "flows"),
    "r.txt": ("database: no stream", None),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path, name):
    """The content of a file decides its format, not its name."""
    text, kind = KINDS[name]
    (tmp_path / name).write_text(text)
    assert detect(tmp_path / name) == kind


def test_broken_json(tmp_path):
    """Invalid JSON is an error with its position."""
    (tmp_path / "a.json").write_text('{\n"fixtures": [,]}')
    with pytest.raises(UsageError, match=r"a\.json:2:14: is not JSON"):
        detect(tmp_path / "a.json")


def test_folders(tmp_path):
    """Folders are searched recursively, without hidden files and the companion files of a dump."""
    for name in (
        "b/request.json", "b/meta.json", "b/response.sse", "a.yaml", ".git/a.yaml", "c.py",
        "d/x.sse", "d/x.request.json", "d/y.json",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = [str(path.relative_to(tmp_path)) for path in files([tmp_path, tmp_path / "a.yaml"])]
    assert found == ["a.yaml", "b/response.sse", "d/x.sse", "d/y.json"]


def test_a_path_that_is_not_there(tmp_path):
    """It is an error that names it."""
    with pytest.raises(UsageError, match="nowhere: there is no such file"):
        list(files([tmp_path / "nowhere"]))
