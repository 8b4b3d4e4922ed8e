"""Measures the reader: what passes it, what it costs, how long it takes to start. `python -m benchmarks --help`."""
