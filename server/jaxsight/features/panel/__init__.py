"""The data of a panel about one function: its kernels, in groups, with places in the source."""
