"""Read files of unknown origin, and the Protocol Buffers in them."""
