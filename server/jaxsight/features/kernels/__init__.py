"""What is said about kernels, in hints, hovers, panels, documents and the terminal."""
