"""The command line: one small file per command, which parses, calls a command and renders."""
