"""Projects: their settings, their Python environments, and their tracers."""
