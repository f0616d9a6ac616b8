"""summarize: one screen for all reports."""
