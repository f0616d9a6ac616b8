"""Many reports: which files are meant, sets of one kind, the ranks of a job."""
