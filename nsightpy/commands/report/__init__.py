"""report: everything that the commands know of some reports, as the data of one page."""
