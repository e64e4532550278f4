"""A pytest that a test starts in a process of its own."""

_LEFT_OUT = (
    "anyio",
    "asyncio",
    "cacheprovider",
    "hypothesispytest",
    "langsmith_plugin",
    "pytest_httpx",
    "randomly",
)

ADDOPTS = " ".join(f"-p no:{name}" for name in _LEFT_OUT)
"""For the variable `PYTEST_ADDOPTS`: without plugins that such tests do not use, whose import takes
longer than most tests do."""
