"""Step 3, policy: decides, purely, whether a message may pass and what a link's switch becomes."""
