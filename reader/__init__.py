"""Step 7, reader: a process that reads one hostile message, holds nothing, and says what it means.

Standard library only, and little of that: a child must start in milliseconds. `contract` is all
that the governor may import.
"""
