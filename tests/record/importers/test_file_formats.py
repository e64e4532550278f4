"""The format of a file, and the files of a folder."""

import gzip
from pathlib import Path

import pytest

from mockllm.core.errors import UsageError
from mockllm.record.importers import foreign_files
from mockllm.record.importers.file_formats import detect, files, not_read
from mockllm.record.importers.foreign_files import ForeignFile

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
    "s": ("---\nversion: 1\nhttp_interactions:\n- {}\n", "vcr"),
    "t.yaml": ("requests:\n- {}\nresponses:\n- {}\n", "vcr"),
    "u.yaml": ("requests:\n  memory: 1\n", None),
    "v.json": ('{"request": {"method": "GET"}, "response": {"status": {"code": 200}}}', "vcr"),
    "w.json": ('[{"scope": "https://x.example:443", "method": "GET", "path": "/"}]', "nock"),
    "x.json": ('[{"jsonrpc": "2.0", "method": "tools/list"}]', None),
    "y.json": ("[1, 2]", None),
    "z.md": ("[a](b)", None),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path, name):
    """The content of a file decides its format, not its name."""
    text, kind = KINDS[name]
    (tmp_path / name).write_text(text)
    assert detect(ForeignFile(tmp_path / name)) == kind


def test_broken_json(tmp_path):
    """Invalid JSON is an error with its position."""
    (tmp_path / "a.json").write_text('{\n"fixtures": [,]}')
    with pytest.raises(UsageError, match=r"a\.json:2:14: is not JSON"):
        detect(ForeignFile(tmp_path / "a.json"))


def test_folders(tmp_path):
    """Folders are searched recursively, without hidden files and the companion files of a dump."""
    for name in (
        "b/request.json", "b/meta.json", "b/response.sse", "a.yaml", ".git/a.yaml", "c.py",
        "d/x.sse", "d/x.request.json", "d/y.json",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = [str(path.relative_to(tmp_path)) for path in files([tmp_path, tmp_path / "a.yaml"])]
    assert found == ["a.yaml", "b/response.sse", "c.py", "d/x.sse", "d/y.json"]


def test_files_of_other_kinds_are_counted():
    """The line says how many there are of each ending, and which the first one is."""
    names = ("a.py", "b/LICENSE", "c.py", "d.toml.gz", "e.py")
    assert not_read(map(Path, names)) == (
        "5 files of other kinds were not read: 3 *.py (a.py, ...), 1 without an ending "
        "(LICENSE), 1 *.toml (d.toml.gz)"
    )
    assert not_read([Path("a.py")]) == "1 file of another kind was not read: 1 *.py (a.py)"


def test_compressed_files(tmp_path, monkeypatch):
    """What gzip has compressed is read as what it holds, within the bounds of a file."""
    path = tmp_path / "a.yaml.gz"
    path.write_bytes(gzip.compress(b"interactions: []"))
    assert detect(ForeignFile(path)) == "vcr"
    path.write_bytes(path.read_bytes()[:10] + b"\xff\xff")
    with pytest.raises(UsageError, match="is not gzip as it says"):
        detect(ForeignFile(path))
    path.write_bytes(gzip.compress(b"interactions: []")[:-9])
    with pytest.raises(UsageError, match="is cut off"):
        detect(ForeignFile(path))
    monkeypatch.setattr(foreign_files, "MAX_FILE", 100)
    path.write_bytes(gzip.compress(b" " * 101))
    with pytest.raises(UsageError, match="at most 100 are read"):
        detect(ForeignFile(path))


def test_a_file_is_parsed_once(tmp_path):
    """What tells the kind of a file is what its reader reads."""
    path = tmp_path / "a.har"
    path.write_text('{"log": {"entries": []}}')
    file = ForeignFile(path)
    value = file.value
    assert detect(file) == "har"
    path.unlink()
    assert file.value is value
