"""On top of the route, cli: the `governor` command."""
