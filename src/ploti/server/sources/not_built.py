"""Settings that declarations will have and that nothing obeys yet, so that they are an error."""

SETTINGS = (
    *("rename", "null_values", "trim", "timezone", "repeated_keys"),
    *("ignore_changes", "compare", "bad_rows"),
)
SOURCE = ("length_check", "credential")
HOLDS = ("max_id_turnover", "min_filled_ratio", "max_extent_shift")
KINDS = ("arcgis", "socrata", "ckan")
CONTINUATIONS = ("review", "auto")
