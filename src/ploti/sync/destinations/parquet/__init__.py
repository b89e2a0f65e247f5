"""Folders of GeoParquet files as destinations: the folder, what it records, and its tables."""

from ploti.sync.destinations.parquet.folder import Parquet as Parquet
