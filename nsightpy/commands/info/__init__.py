"""info: what each report is."""
