"""A proxy that puts tools of an MCP server behind the gate, with no change in the agent or the server.

``interlock mcp-proxy --config gate.toml -- server command`` stands between the
two on standard input and output. It passes lines on as they are, whatever they
say and whichever revision of the protocol they are of, and handles by itself
the calls of those tools that its configuration names.
"""
