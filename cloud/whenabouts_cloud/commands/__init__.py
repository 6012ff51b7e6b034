"""The command line `whenabouts-cloud`: one module a subcommand."""
