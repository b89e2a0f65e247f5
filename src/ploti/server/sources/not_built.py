"""Settings that declarations will have and that nothing obeys yet, so that they are an error."""

SOURCE = ("length_check", "credential")
KINDS = ("arcgis",)
