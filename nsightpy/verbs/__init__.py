"""Verbs: one function per command. Reports in, frames through an analysis, a result out."""
