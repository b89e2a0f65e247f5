"""The migrations of the database, forward only; `env.py` is what alembic runs."""
