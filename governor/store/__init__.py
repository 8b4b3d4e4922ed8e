"""Under the route, store: one SQLite file, one unit of work per decision."""
