"""What a compile without the device leaves open: autotuned matmuls, and calls of libraries."""
