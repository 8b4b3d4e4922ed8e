"""Step 4, outbox: takes a message from a local agent and keeps it until its end is known."""
