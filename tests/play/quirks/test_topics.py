"""The topics by which reports group quirks."""

from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.base import TOPICS


def test_every_quirk_has_a_topic():
    """No quirk is left under `other`, and every topic is one of the list."""
    wrong = {
        name: one.prose.topic for name, one in QUIRKS.items() if one.prose.topic not in TOPICS[:-1]
    }
    assert wrong == {}
