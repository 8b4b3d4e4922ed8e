"""Told by alembic to run: migrates the open transaction that `governor.store.migrate` hands in."""

from alembic import context
from sqlmodel import SQLModel

import governor.store.tables  # noqa: F401 - fills the metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=SQLModel.metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
