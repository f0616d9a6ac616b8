"""MPI calls of many ranks side by side: which belong together, and who waited for whom."""
