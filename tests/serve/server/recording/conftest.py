import pytest

from tests.serve.server.recording.odd_upstream import OddUpstream
from tests.serve.server.recording.recorded_server import Recording


@pytest.fixture
def recorder(tmp_path):
    """A recorder in front of a service that a test gives a script to."""
    with OddUpstream() as upstream:
        yield Recording(tmp_path / "recorded", upstream)
