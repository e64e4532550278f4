"""The marks of pytest-recording in Python files."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.importers.rewrite_marks import RECORDED, UNMATCHED, convert
from tests.cases import for_all

MARKS = {
    "@pytest.mark.vcr": "@pytest.mark.mockllm_recorded",
    "@pytest.mark.vcr()": "@pytest.mark.mockllm_recorded",
    "@mark.vcr  # why": "@mark.mockllm_recorded  # why",
    '@pytest.mark.vcr("more.yaml")': "@pytest.mark.mockllm_recorded",
    '@pytest.mark.vcr(record_mode="once")': '@pytest.mark.mockllm_recorded(mode="once")',
    '@pytest.mark.vcr(record_mode="rewrite")': '@pytest.mark.mockllm_recorded(mode="all")',
    '@pytest.mark.vcr(record_mode="none")': "@pytest.mark.mockllm_recorded",
    '@pytest.mark.vcr(\n    filter_headers=["x"],\n)': "@pytest.mark.mockllm_recorded",
    '@mark.vcr(filter_headers=["\u00e9"]) # \u00e9': "@mark.mockllm_recorded # \u00e9",
}


@pytest.mark.parametrize("before", MARKS)
def test_marks(before):
    """A mark becomes that of mockllm, with its mode, and nothing else of the file changes."""
    test = "\ndef test_it():  # a comment, \u4f60\n    assert   True\n"
    found = convert(f"import pytest\n\n\n{before}{test}")
    assert found.source == f"import pytest\n\n\n{MARKS[before]}{test}"
    assert found.notes == ()


def test_marks_anywhere():
    """Marks of classes, modules and parameters are converted, too."""
    before = textwrap.dedent("""\
        pytestmark = [pytest.mark.vcr, pytest.mark.slow]
        CASES = [pytest.param("a", marks=pytest.mark.vcr(record_mode="all")), "pytest.mark.vcr"]

        @pytest.mark.vcr
        class TestIt: ...
        """)
    after = convert(before).source
    assert after.count("mockllm_recorded") == 3
    assert after.splitlines()[0] == "pytestmark = [pytest.mark.mockllm_recorded, pytest.mark.slow]"
    assert 'marks=pytest.mark.mockllm_recorded(mode="all")), "pytest.mark.vcr"]' in after


NOTES = {
    '@pytest.mark.vcr(match_on=["body"])\ndef test(): ...': (
        1, "pytest.mark.vcr(match_on=...) is left out: write mockllm_recorded(match=[...])",
    ),
    "@pytest.mark.vcr(**SETTINGS)\ndef test(): ...": (1, "its settings are left out"),
    "@pytest.mark.vcr(new=1)\ndef test(): ...": (1, "mockllm has no such setting"),
    "\n@pytest.mark.vcr(record_mode=MODE)\ndef test(): ...": (2, "convert it by hand"),
    "@pytest.mark.vcr(  # why\n)\ndef test(): ...": (1, "with a comment in it"),
    "@pytest.mark.default_cassette('a')\ndef test(): ...": (1, "found by the name of its test"),
    "@pytest.mark.block_network\ndef test(): ...": (1, "mockllm blocks no connections"),
    "\n\n@pytest.fixture\ndef vcr_config(): ...": (4, "filters go into [redact]"),
    "def test(vcr): ...": (1, "the requests of a recorded test"),
    "def test(a, *, vcr): ...": (1, "the requests of a recorded test"),
    "with my_vcr.use_cassette('a.yaml'): ...": (1, "it does nothing in a recorded test"),
}  # fmt: skip


@for_all("source", NOTES)
def test_what_is_not_converted(source):
    """What has no counterpart is listed, with its line and what to do."""
    (note,) = convert(source).notes
    line, text = NOTES[source]
    assert note.line == line
    assert text in note.text


def test_marks_that_are_listed_stay():
    """A mark that has to be converted by hand stays as it is."""
    for source in ("@pytest.mark.vcr(record_mode=MODE)\ndef test(): ...", "mark.vcr(  #\n)\n"):
        assert convert(source).source == source


def test_other_code_stays():
    """Code without the marks stays, also if it has their names."""
    source = "vcr = 1\nx.vcr\nprint('pytest.mark.vcr')  # pytest.mark.vcr\nOpenAI(base_url='https://api.groq.com/openai/v1')\n"
    found = convert(source)
    assert (found.source, found.notes) == (source, ())


@given(
    st.lists(st.sampled_from([*MARKS, "# @pytest.mark.vcr", "@other", '@other("\u00e9")'])),
    st.sampled_from(["\n", "\r\n"]),
)
def test_only_marks_change(marks, end):
    """However marks are mixed with other lines, each is converted, and the other bytes stay."""
    lines = [f"{mark}{end}def test_{number}(): ..." for number, mark in enumerate(marks)]
    pairs = zip(lines, marks, strict=True)
    expected = [line.replace(mark, MARKS.get(mark, mark)) for line, mark in pairs]
    assert convert(end.join(lines)).source == end.join(expected)


def test_what_is_no_python():
    """It is an error, and nothing is changed."""
    with pytest.raises(SyntaxError):
        convert("def test(:\n    pytest.mark.vcr")


def test_tests_without_mark():
    """A test that opens a cassette in its code gets a mark above its other decorators."""
    before = textwrap.dedent("""\
        '''Tests.'''
        from __future__ import annotations

        def test_a():
            with my_vcr.use_cassette("a"): ...

        class TestIt:
            @other
            async def test_b(self): ...

            def test_c(self): ...
        """)
    after = convert(
        before, dict.fromkeys(("test_a", "TestIt.test_b"), (RECORDED,))
    ).source.splitlines()
    assert after[2] == "import pytest"
    assert after[4:6] == ["@pytest.mark.mockllm_recorded", "def test_a():"]
    assert after[9:11] == ["    @pytest.mark.mockllm_recorded", "    @other"]
    assert "\n".join(after).count("mockllm_recorded") == 2
    again = convert(
        "import pytest\n\ndef test_c(): ...\n", {"test_c": (RECORDED, UNMATCHED)}
    ).source
    assert again.count("import pytest") == 1


def test_marks_that_stay_are_told_from_remarks():
    """Only a mark that has to be converted by hand needs VCR still."""
    (note,) = convert("@pytest.mark.vcr(record_mode=MODE)\ndef test(): ...").notes
    assert note.stays
    (note,) = convert("@pytest.mark.vcr(match_on=['uri'])\ndef test(): ...").notes
    assert not note.stays
