"""The interface: the command line and the terminal studio. Nothing else imports it."""
