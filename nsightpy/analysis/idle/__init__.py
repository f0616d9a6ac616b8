"""Why a device had nothing to compute."""
