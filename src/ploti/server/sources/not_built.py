"""Settings that declarations will have and that nothing obeys yet, so that they are an error."""

SETTINGS = (
    *("check_every", "rename", "null_values", "trim", "timezone", "repeated_keys"),
    *("ignore_changes", "compare", "bad_rows", "paused"),
)
SOURCE = (
    *("encoding", "delimiter", "header_row", "layer", "sheet", "member"),
    *("length_check", "credential"),
)
HOLDS = ("max_id_turnover", "min_filled_ratio", "max_extent_shift")
KINDS = ("arcgis", "socrata", "ckan")
FORMATS = (
    *("tsv", "json", "ndjson", "geojsonseq", "geoparquet", "parquet", "shapefile", "gpkg"),
    *("flatgeobuf", "filegdb", "kml", "xlsx"),
)
CONTINUATIONS = ("review", "auto")
