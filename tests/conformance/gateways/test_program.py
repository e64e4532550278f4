"""The process of a gateway: what is said where it does not start."""

from __future__ import annotations

import sys

import pytest

from mockllm.conformance.gateways.cases import Pair
from mockllm.conformance.gateways.program import GatewayCommand, running_gateway
from mockllm.core.errors import ProbeError

CHAT = Pair("chat", "chat")


def test_the_end_of_its_output_is_shown() -> None:
    """A gateway that ends says why in its last lines, of which the first may be a banner."""
    code = "print(*range(20), sep=chr(10)); raise SystemExit(3)"
    with (
        pytest.raises(ProbeError) as raised,
        running_gateway(GatewayCommand((sys.executable, "-c", code)), CHAT, "http://h/v1", "m"),
    ):
        pass
    first, *lines = str(raised.value).splitlines()
    assert first == "the gateway ended with exit code 3:"
    assert lines == [f"  {number}" for number in range(5, 20)]


def test_a_command_that_there_is_not() -> None:
    """The message has the command with its values in place of the placeholders."""
    command = GatewayCommand(("/nowhere/gateway", "--upstream", "{upstream}", "--model={model}"))
    with pytest.raises(ProbeError) as raised, running_gateway(command, CHAT, "http://h/v1", "m"):
        pass
    assert str(raised.value) == (
        "the gateway cannot be started: /nowhere/gateway --upstream http://h/v1 --model=m: "
        "No such file or directory"
    )
