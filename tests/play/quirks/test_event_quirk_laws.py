"""Laws of every quirk of OpenAI Responses, of AG-UI, of Bedrock and of Interactions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.events import Frame, StreamError
from mockllm.core.turn import Opaque, Text, ToolCall, Turn
from mockllm.play.quirks.agui import QUIRKS as AGUI
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.bedrock import QUIRKS as BEDROCK
from mockllm.play.quirks.interactions import QUIRKS as INTERACTIONS
from mockllm.play.quirks.responses import QUIRKS as RESPONSES
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.quirks.event_laws import assert_plays, named, odd_turns, read, sent, summary
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import decoded_turn, plain, play
from tests.strategies import turns

pytestmark = pytest.mark.slow

Form = tuple[str, Quirk, Variant]

FORMS: list[Form] = [
    (api, quirk, variant)
    for api, quirks in (
        ("responses", RESPONSES),
        ("agui", AGUI),
        ("bedrock", BEDROCK),
        ("interactions", INTERACTIONS),
    )
    for quirk in quirks
    for variant in quirk.variants
]
BY_NAME = {named(quirk, variant): (api, quirk, variant) for api, quirk, variant in FORMS}

# Items that share an index come in the order in which they open; where a later one opens first,
# only the final output shows it, after the events.
IN_ORDER = {
    "resp-output-index:shared",
    "resp-reasoning-ids:shared-index",
    "bedrock-empty-stop",  # it ends the block that is open, and of two none can be told
}

TEXT = Turn((Text(("Hel", "lo")),), "stop")
CALL = Turn((ToolCall("f", "call_1", ('{"a":', "1}")),), "tool_calls")
CUT = Turn()
FAILED = Turn(error=StreamError("boom", "server_error", "server_error"))
IDLE = {
    "resp-args-done-only": TEXT,
    "resp-zero-arg": CALL,
    "resp-args-in-added": TEXT,
    "resp-empty-delta": CUT,
    "resp-item-id-rotates": CUT,
    "resp-item-id-null": CUT,
    "resp-call-id-missing": TEXT,
    "resp-output-index": TEXT,
    "resp-interleaved": CALL,
    "resp-completed-output-empty": FAILED,
    "resp-error-shape:nested": FAILED,
    "resp-dup-done": CUT,
    "resp-delta-after-done": CUT,
    "resp-unknown-event:part": CALL,
    "resp-required-missing:logprobs": CALL,
    "resp-required-missing:arguments": TEXT,
    "resp-required-missing:content-index": CALL,
    "resp-required-missing:summary-index": TEXT,
    "resp-missing-openers:item-added": CUT,
    "resp-missing-openers:part-added": CALL,
    "resp-incomplete": FAILED,
    "resp-no-terminal": FAILED,
    "resp-after-completed": FAILED,
    "resp-reasoning-ids": TEXT,
    "resp-legacy-names": FAILED,
    "resp-done-sentinel": CUT,
    "agui-no-run-finished:after-message": CUT,
    "agui-no-run-finished:inside-message": CUT,
    "agui-empty-delta": CALL,
    "agui-args-wrong-id": TEXT,
    "agui-phantom-parent": TEXT,
    "agui-parent-null": TEXT,
    "agui-after-message-end": CALL,
    "agui-success-pending": TEXT,
    "agui-open-call-at-finish": FAILED,
    "agui-parallel-calls": CALL,
    "agui-done-sentinel": CUT,
    "agui-chunk-interleave": CALL,
    "agui-start-replayed": TEXT,
    "agui-zero-arg": CALL,
    "ia-empty-signatures": TEXT,
    "ia-arguments-in-start": TEXT,
    "ia-content-in-start": CALL,
    "ia-zero-arg": CALL,
    "ia-interleaved": TEXT,
    "ia-unknown-types:delta": CALL,
    "ia-no-done": CUT,
    "ia-unknown-types:step": CUT,
    "ia-cut": CUT,
    "ia-cut:done": FAILED,
    "bedrock-truncated-frame": FAILED,
    "bedrock-wrong-checksum": FAILED,
    "bedrock-empty-stop": CUT,
    "bedrock-key-twice": FAILED,
    "bedrock-metadata-twice": FAILED,
    "bedrock-no-metadata": FAILED,
    "bedrock-no-block-stop": CUT,
    "bedrock-no-message-stop": FAILED,
    "bedrock-empty-end-turn:no-blocks": CUT,
    "bedrock-empty-end-turn:no-stop": CUT,
    "bedrock-text-without-start": CALL,
    "bedrock-zero-args": CALL,
    "bedrock-tool-use-without-block": CALL,
    "bedrock-end-turn-with-call": TEXT,
    "bedrock-malformed-tool-use": CALL,
    "bedrock-server-tool-type:client": TEXT,
}
"""By quirk or variant, a turn in which there is nothing to change; the others change any."""

# Our own decoder knows no names of other APIs.
UNREAD = {"resp-legacy-names"}
READ = [form for form in FORMS if form[1].prose.right != "error" and form[1].name not in UNREAD]

forms = for_all(("api", "quirk", "variant"), FORMS, ids=list(BY_NAME))
read_forms = for_all(
    ("api", "quirk", "variant"), READ, ids=[named(quirk, variant) for _, quirk, variant in READ]
)
few = settings(max_examples=20)
ODD_TURNS = {api: odd_turns(api) for api in dict.fromkeys(api for api, _, _ in FORMS)}


def _expected(turn: Turn, api: str, quirk: Quirk, variant: Variant) -> dict[str, object]:
    wanted = PROTOCOLS[api].project(expected_turn(named(quirk, variant), variant, turn))
    return summary(wanted, ids=variant.ids)


@forms
def test_every_variant_changes_its_sample(api: str, quirk: Quirk, variant: Variant) -> None:
    """The bytes of a sample differ with the quirk."""
    sample = quirk.sample_of(variant)
    assert play(quirk, variant, api, sample).data != plain(sample, api).data


@read_forms
def test_samples_decode_to_the_declared_turn(api: str, quirk: Quirk, variant: Variant) -> None:
    """Where no error is expected, our own decoder reads the turn that the variant declares."""
    turn = resolve(quirk.sample, 0, api)
    got = decoded_turn(play(quirk, variant, api), api)
    assert summary(got, ids=variant.ids) == _expected(turn, api, quirk, variant)


@pytest.mark.slow
@pytest.mark.parametrize("api", ODD_TURNS)
@few
@given(st.data())
def test_any_turn_plays(api: str, data: st.DataObject) -> None:
    """No turn makes a variant fail, whatever frames it has; times stay sorted."""
    turn = data.draw(ODD_TURNS[api])
    for own, quirk, variant in FORMS:
        if own == api:
            assert_plays(turn, api, quirk, variant)


@pytest.mark.parametrize("error", ['"boom"', "null", "[1]", "{}"])
def test_an_error_of_any_form_plays(error: str) -> None:
    frame = Frame(f'{{"type":"error","error":{error}}}')
    for api, quirk, variant in FORMS:
        if api == "responses":
            assert_plays(Turn((Opaque(api, frame),)), api, quirk, variant)


@pytest.mark.slow
@pytest.mark.parametrize("api", ODD_TURNS)
@few
@given(turn=turns(), in_order=turns(interleaved=False))
def test_any_turn_decodes_to_the_declared_turn(api: str, turn: Turn, in_order: Turn) -> None:
    """Where no error is expected, our own decoder reads the turn that the variant declares, of any
    turn."""
    for own, quirk, variant in READ:
        if own == api:
            name = named(quirk, variant)
            given_turn = in_order if name in IN_ORDER else turn
            got = summary(read(sent(given_turn, api, name), api), ids=variant.ids)
            assert got == _expected(given_turn, api, quirk, variant), name


@forms
def test_nothing_to_change(api: str, quirk: Quirk, variant: Variant) -> None:
    """A turn without the feature that a variant changes keeps its bytes."""
    name = named(quirk, variant)
    turn = IDLE.get(name, IDLE.get(quirk.name))
    if turn is None:
        assert sent(CUT, api, name) != sent(CUT, api), "give IDLE a turn for it"
        return
    assert sent(turn, api, name) == sent(turn, api)
    assert expected_turn(name, variant, turn) == turn


@forms
def test_bytes_are_numbered(api: str, quirk: Quirk, variant: Variant) -> None:
    """Sequence numbers run from 0 with every quirk that does not change them."""
    if api == "responses" and quirk.name != "resp-required-missing":
        body = b"".join(play(quirk, variant, api).data).decode()
        numbers = [
            int(line.partition('"sequence_number":')[2].partition(",")[0].partition("}")[0])
            for line in body.split("\n")
            if line.startswith("data: {")
        ]
        assert numbers == list(range(len(numbers)))
