"""What editors ask about printed programs: jaxprs, StableHLO, HLO and lists of kernels."""
