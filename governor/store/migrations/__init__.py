"""Under the route, store: the steps from one shape of the tables to the next, run by alembic."""
