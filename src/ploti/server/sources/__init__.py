"""Stage: what a dataset's operator declared about its source.

Takes a declaration as written; gives its typed form. Rules: an unknown setting is an error, and
so is one that no part of this release obeys.
"""
