"""mcp: the commands as read-only tools of agents."""
