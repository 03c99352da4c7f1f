"""What an editor or the terminal shows, one module or folder for each feature."""
