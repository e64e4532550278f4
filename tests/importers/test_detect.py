"""Which kind of file a file is, and the files of a folder."""

import pytest

from mockllm.errors import UsageError
from mockllm.importers import read
from mockllm.importers.file_formats import detect, files

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
    "q.txt": ("database: no stream", None),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path, name):
    """The beginning of a file tells its kind, whatever it is called."""
    text, kind = KINDS[name]
    (tmp_path / name).write_text(text)
    assert detect(tmp_path / name) == kind


def test_what_is_of_no_kind(tmp_path):
    """It is an error that says which kinds there are."""
    (tmp_path / "a").write_text("hello")
    with pytest.raises(UsageError, match="neither a VCR cassette"):
        read(tmp_path / "a")


def test_broken_json(tmp_path):
    """What begins like JSON and is none is an error with its place."""
    (tmp_path / "a.json").write_text('{\n"fixtures": [,]}')
    with pytest.raises(UsageError, match=r"a\.json:2:14: is not JSON"):
        detect(tmp_path / "a.json")


def test_folders(tmp_path):
    """Folders are searched to the bottom; hidden files and what belongs to a dump are left."""
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
