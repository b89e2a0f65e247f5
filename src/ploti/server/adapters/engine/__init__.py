"""The engine of a build: DuckDB for the tables, pyarrow, numpy and shapely for the files."""
