"""Alembic's environment: migrate over the connection that the catalog has already opened, in its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
