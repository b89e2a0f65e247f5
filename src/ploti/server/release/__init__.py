"""Stage: whether a candidate is released or held, and how its release reads.

Takes a candidate, its base and the dataset's thresholds; gives findings, the reason of a hold or
the reason of a resync. Rules: a MAJOR change and a faulty key always hold; thresholds need at
least 20 records; the state on hold or discarded last is not built again.
"""
