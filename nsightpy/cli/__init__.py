"""The command line: one small file per command, which parses, calls a verb and renders."""
