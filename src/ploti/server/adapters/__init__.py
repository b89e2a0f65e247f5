"""Adapters: one module or folder a port; only the composition root names them."""
