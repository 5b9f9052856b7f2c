"""Schema migrations of the catalog. `pipeline.catalog` runs them when it opens one; see CONTRIBUTING for adding one."""
