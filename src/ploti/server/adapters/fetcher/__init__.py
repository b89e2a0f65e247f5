"""Adapter: the bytes of a declared source, from a folder that was opened or from the web."""

from ploti.server.adapters.fetcher.fetcher import SourceFetcher

__all__ = ["SourceFetcher"]
