"""findings: what stands out on each device, and what it could give back at most."""
