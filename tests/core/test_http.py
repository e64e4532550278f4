"""What all rooms know of HTTP."""

import pytest

from mockllm.core.http import stated_wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "2", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "2", "retry-after-ms": "soon"}, 2),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"content-type": "text/plain"}, None),
    ],
)
def test_the_stated_wait(headers, seconds):
    """Milliseconds are more exact than seconds; a value that is no number hides no other one."""
    assert stated_wait(headers.items()) == seconds
