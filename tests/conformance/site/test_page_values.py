"""The values of pages: the way from one mistake to the next, and the sentence about a client."""

from __future__ import annotations

from mockllm.conformance.site.pages import Pages
from tests.conformance.site.results import RIGHT, WRONG, failed, results


def test_each_mistake_leads_to_those_beside_it() -> None:
    """The worst first; the first has none before it, the last none after it."""
    worse, loud = failed("chat/b", "ids", "data lost"), failed("chat/c", "ids", "loud failure")
    pages = dict(Pages([results("one", loud, WRONG, worse)]).cells())
    steps = [(values["previous"], values["case"].case, values["next"]) for values in pages.values()]
    addresses = [f"../../{page}" for page in pages]
    assert steps == [
        ("", WRONG.case, addresses[1]),
        (addresses[0], "chat/b", addresses[2]),
        (addresses[1], "chat/c", ""),
    ]


def test_the_sentence_about_a_client_counts_topics() -> None:
    """Those that were judged, and those with a mistake."""
    found = results("one", WRONG, failed("chat/b", "ids", "data lost"), RIGHT)
    right = results("two", RIGHT)
    summaries = {
        values["column"].results.client.name: values["summary"]
        for _, values in Pages([found, right]).clients()
    }
    assert summaries == {
        "two": "Place 1 in the ranking. No mistake in the 1 topics that were judged.",
        "one": "Place 2 in the ranking. It makes mistakes in 2 of the 3 topics that were judged.",
    }
