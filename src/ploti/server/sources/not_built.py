"""Settings that declarations will have and that nothing obeys yet, so that they are an error."""

SETTINGS = (
    *("rename", "null_values", "trim", "timezone"),
    *("ignore_changes", "compare", "bad_rows"),
)
SOURCE = ("length_check", "credential")
KINDS = ("arcgis", "socrata", "ckan")
