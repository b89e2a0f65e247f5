"""The demo: eight real states of the world's airports, through a running server into a database."""
