"""Keeps a destination in step with a subscription."""
