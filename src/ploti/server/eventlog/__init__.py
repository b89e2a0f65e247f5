"""Stage: which events a decision writes, how they read, and how a log is paged.

Takes decisions of `release` and `membership`; gives bodies to append and finished JSON. Rules: a
schema's change comes right before its version's event; one function renders events; a cursor is
the last event applied.
"""
