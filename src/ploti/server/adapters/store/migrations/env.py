"""Run by alembic: takes the connection and the transaction that it is given."""

from __future__ import annotations

from alembic import context

from ploti.server.adapters.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
