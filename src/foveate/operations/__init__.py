"""Operations shared by the command line, the HTTP service and MCP."""
