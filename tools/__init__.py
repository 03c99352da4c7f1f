"""Programs that measure jaxsight, run by hand: `tools/README.md` lists them."""
