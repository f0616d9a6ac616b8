"""How answers leave: figures and columns in words, documents for machines, files and folders."""
