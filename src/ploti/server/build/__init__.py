"""Stage: from the bytes of a source's state to a candidate, which is a version not yet decided.

Takes a build order (declaration, base, source file); gives decisions and SQL text that an engine
runs. Rules: nothing is lost or bent; the new snapshot is the base with the changes applied; the
same order gives the same ids and the same bytes.
"""
