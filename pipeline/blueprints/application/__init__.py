"""What is derived for the runtime: DDL and rows, the API spec, and the FastAPI source."""
