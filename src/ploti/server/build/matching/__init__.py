"""Matching: which new row continues which record of the base, where the plain key does not say.

Takes a `Question`: two relations that `run` can scan more than once, with the same types in the
columns that both have. The base has `_ploti_record_id VARCHAR` (unique), the new one
`_ploti_position BIGINT` (unique, in no order that means anything), each its key columns and the
columns to compare. Values are canonical (equal values are equal bytes), geometry is WKB in a BLOB.

Gives a temporary table `match_links (position, record_id, stage, evidence)`, one to one, evidence
JSON or null; one `match_proposals` of the same form, for staff, of pairs that were not linked; and
a `Report`, from which review decides. Nothing is released from here: with `over_budget` the
caller holds the version (`processing`), with `keys.dealt_anew` too (`data_check`).

Rules: each stage takes only what the ones before left; a row has one link and so has a record; the
same tables in another order, or with other threads, give the same links but for rows that are
equal in every column. `run` executes one SQL statement on one DuckDB connection (no extension);
it may raise `OverBudget` for a limit of its own, of time or memory.

`match` does everything. An engine that has joined plain keys by itself writes those links into
`match_links` (made by `links.begin`) and calls `match_beyond`.
"""
