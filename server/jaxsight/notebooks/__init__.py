"""jaxsight in notebooks: pictures of live functions, and magics. It runs in the user's process."""
