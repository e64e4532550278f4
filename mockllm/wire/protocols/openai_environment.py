"""The environment variables that OpenAI's SDKs read, and the hosts that speak OpenAI's APIs."""

from __future__ import annotations

from mockllm.wire.protocols.records import Environment

ENVIRONMENT = Environment(
    base_urls=(("OPENAI_BASE_URL", ""),),
    keys=("OPENAI_API_KEY",),
    other_base_urls=("OPENAI_API_BASE", "AZURE_API_BASE"),
    # With one of these and OPENAI_API_KEY, the openai module raises an error because it cannot
    # choose a service.
    on_request={
        "azure": Environment(
            base_urls=(("AZURE_OPENAI_ENDPOINT", "/v1"),),  # the client appends the version itself
            keys=("AZURE_OPENAI_API_KEY",),
            fixed=(("OPENAI_API_VERSION", "2024-10-21"),),
        )
    },
)

HOSTS = (
    "api.openai.com",
    "*.openai.azure.com",
    "*.cognitiveservices.azure.com",
    "*.services.ai.azure.com",
    "models.github.ai",
    "models.inference.ai.azure.com",
    "bedrock-mantle.*.api.aws",
    "api.cerebras.ai",
    "api.deepseek.com",
    "api.fireworks.ai",
    "api.groq.com",
    "api.mistral.ai",
    "api.moonshot.*",
    "api.perplexity.ai",
    "api.sambanova.ai",
    "api.together.*",
    "api.writer.com",
    "api.x.ai",
    "openrouter.ai",
    "router.huggingface.co",
    "integrate.api.nvidia.com",
    "dashscope*.aliyuncs.com",
)
