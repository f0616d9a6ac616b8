"""From a .nsys-rep to its SQLite export."""
