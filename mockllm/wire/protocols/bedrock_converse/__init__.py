"""Amazon Bedrock's own API, Converse.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html

`request` (with `messages`) parses requests; `encoder` writes answers and `decoder` reads them;
`union` is how a frame of an event stream holds an event, `blocks` what both sides share, `errors`
all errors and the headers; `protocol` is the whole. The path names the model and decides whether
the answer is streamed. Models of Anthropic also have their own API on Bedrock (`invoke`), which is
a service of that protocol.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Operation, Route
from mockllm.wire.protocols.records import Environment

API = "bedrock"

_ENDS: dict[str, Operation] = {
    "{action:converse|converse-stream}": "generate",
    "count-tokens": "count_tokens",
}

ADDRESS = Address(
    name=API,
    title="Amazon Bedrock Converse",
    package=__name__,
    # The ARN of an inference profile has a slash, which some clients quote and others do not.
    routes=tuple(
        Route("POST", f"/model/{model}/{end}", operation)
        for model in ("{model}", "{owner}/{model}")
        for end, operation in _ENDS.items()
    ),
    paths=(re.compile(r"/model/(?P<model>.+)/(?P<action>converse|converse-stream)$"),),
    env=Environment(
        # Not AWS_ENDPOINT_URL: it would lead the clients of all services of AWS here.
        base_urls=(("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", ""),),
        keys=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        other_keys=("AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE"),
        fixed=(("AWS_DEFAULT_REGION", "us-east-1"), ("AWS_REGION", "us-east-1")),
    ),
    hosts=(
        "bedrock-runtime.*.amazonaws.com",
        "bedrock-runtime.*.amazonaws.com.cn",
        "bedrock-runtime-fips.*.amazonaws.com",
    ),
    provider="aws.bedrock",
)
