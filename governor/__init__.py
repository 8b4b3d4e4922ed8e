"""bridge-governor: stands between the agents of one host and the governors of others."""

__version__ = "0.1.0"
