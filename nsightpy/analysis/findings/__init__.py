"""Findings: small checks on plain figures."""
