"""The names of the columns that ploti adds to a record's own in files and tables."""

RECORD_ID = "_ploti_record_id"
OP = "_ploti_op"
CHANGE = "_ploti_change"
BBOX = "_ploti_bbox"

PREFIX = "_ploti_"
"""No column of a dataset begins with this (in any case): a source's is renamed."""
