"""The HTTP service, the MCP server and the inspector."""
