"""The documents that the client has open, as texts and windows of the engine's documents."""
