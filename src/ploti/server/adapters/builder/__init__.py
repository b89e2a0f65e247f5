"""Adapter: runs a build in a process of its own, with limits and without secrets."""

from ploti.server.adapters.builder.child import run_child
from ploti.server.adapters.builder.limits import Limits
from ploti.server.adapters.builder.process import ProcessBuilder

__all__ = ["Limits", "ProcessBuilder", "run_child"]
