"""Programs of those who work on jaxsight: `tools/README.md` lists them."""
