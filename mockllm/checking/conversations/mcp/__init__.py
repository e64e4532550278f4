"""The calls of a model and the operations of MCP servers, paired and judged. Pure."""
