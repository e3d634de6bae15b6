"""Training rows as columns: what they are made of, written, and read. The one package that imports pyarrow."""
