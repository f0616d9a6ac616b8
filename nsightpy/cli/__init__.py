"""The command line: it parses, calls a command and renders."""
