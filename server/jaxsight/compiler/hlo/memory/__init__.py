"""Where values are stored, and the transfers between the host and the device."""
