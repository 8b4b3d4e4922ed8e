"""Step 5, webhook: carries messages between governors, signed over their raw bytes and freshly."""
