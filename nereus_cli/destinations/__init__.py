"""Where messages go: one module for each kind of destination, imported on first use."""
