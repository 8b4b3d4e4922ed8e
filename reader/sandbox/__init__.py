"""What the reader gives up before it sees a message."""
