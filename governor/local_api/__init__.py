"""Step 2, local API: what agents of this host may ask, each known by its token."""
