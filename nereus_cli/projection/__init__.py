"""What the records add up to. Rebuildable from the log at any time; views for readers."""
