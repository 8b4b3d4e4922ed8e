"""Step 6, inbound: takes a peer's message into the database, then has it read, one reader a message."""
