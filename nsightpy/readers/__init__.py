"""Readers: files in, frames out."""
