"""MCP over HTTP and stdio: answers of `play.mcp` as bytes, and the bridge for programs that agents
start."""
