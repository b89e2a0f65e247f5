"""REST: one module a resource; each handler parses, calls one use case, and answers its value."""
