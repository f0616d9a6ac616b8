"""The columns of reports, imported once: files of the user's cache that are mapped from then on."""
