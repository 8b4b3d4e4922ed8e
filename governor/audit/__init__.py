"""Beside the route, audit: a hash-chained log of every decision, without the texts."""
