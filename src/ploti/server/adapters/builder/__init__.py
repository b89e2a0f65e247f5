"""Adapter: runs a build in a process of its own, with limits and without secrets.

Nothing is imported here: the server and the child each load their own half.
"""
