"""Makes environments and runs them."""
