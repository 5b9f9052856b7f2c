"""One module a verb of the command line. No logic here: parse, call the library, print."""
