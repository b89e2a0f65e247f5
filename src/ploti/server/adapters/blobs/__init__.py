"""Adapter: blobs in a local folder, and the signed links under which the server gives them out."""

from ploti.server.adapters.blobs.folder import FolderBlobs
from ploti.server.adapters.blobs.signing import LinkSigner, derive

__all__ = ["FolderBlobs", "LinkSigner", "derive"]
