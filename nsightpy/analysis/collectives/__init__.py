"""The collectives of all ranks side by side: which belong together, which ranks form a group."""
