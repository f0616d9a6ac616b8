"""operators: host and device time of operators, and of the modules that call them."""
