"""Ports: what the use cases need of the world, as Protocols that the adapters implement."""
