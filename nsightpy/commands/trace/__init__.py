"""The command trace."""
