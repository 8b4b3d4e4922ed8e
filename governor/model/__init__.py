"""Step 7, reader, the model beside it: one pinned file, its server in a process of its own, kept going."""
