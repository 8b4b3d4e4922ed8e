"""Beside the route, directory: who is who - this host, its agents, its peers and their keys."""
