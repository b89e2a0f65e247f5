"""Use cases, one verb each: they load, call a stage, and commit in one transaction."""
