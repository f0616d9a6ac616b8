"""A comparison of runs for terminals, pull requests, test reports of CI, and as a picture."""
