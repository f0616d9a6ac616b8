"""Many ranks together: every report's part on one clock, and what ranks cost each other."""
