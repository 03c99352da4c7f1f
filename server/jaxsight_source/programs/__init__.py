"""Programs that somebody else traced, lowered or exported, as calls that can be written."""
