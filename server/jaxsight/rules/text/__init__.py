"""What rules read off a module's text."""
