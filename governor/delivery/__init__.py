"""Step 8, delivery: puts the clean text where its agent finds it, then wakes the agent without it."""
