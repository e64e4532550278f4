"""`mockllm init --runner`: a runner to begin with."""

import pytest

from mockllm.cli.init import LANGUAGES, runners_folder, steps


def test_every_folder_is_a_language():
    """The languages of the option are the folders in examples/runners."""
    assert tuple(sorted(path.name for path in runners_folder().iterdir())) == LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_runner_is_written(mockllm, tmp_path, language):
    """All files of the runner are copied, and the next commands are printed."""
    folder = tmp_path / "new" / "my runner"
    result = mockllm("init", "--runner", language, folder)
    assert result.exit_code == 0, result.stderr
    files = [path for path in folder.rglob("*") if path.is_file()]
    for file in files:
        assert f"wrote {file}" in result.stdout
        source = runners_folder() / language / file.relative_to(folder)
        assert file.read_bytes() == source.read_bytes()
    names = {file.stem.lower() for file in files}
    assert {"readme", "client", "chat"} <= names
    assert f"cd '{folder}'\n" in result.stdout
    for line in steps(language):
        assert f"  {line}\n" in result.stdout
    assert steps(language)[-1].startswith("mockllm check --api chat -- ")


def test_nothing_is_overwritten(mockllm, tmp_path):
    """If one file is there already, none is written."""
    (tmp_path / "runner.py").write_text("mine")
    result = mockllm("init", "--runner", "python", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path / 'runner.py'} is there already" in result.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_an_unknown_language(mockllm, tmp_path):
    """The languages that there are, are listed."""
    result = mockllm("init", "--runner", "cobol", tmp_path)
    assert result.exit_code == 2
    assert "'typescript'" in result.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_readmes_are_short(language):
    """A README has what a user needs, in a few lines."""
    text = (runners_folder() / language / "README.md").read_text()
    assert len(text.splitlines()) <= 15
    assert max(map(len, text.splitlines())) <= 105
