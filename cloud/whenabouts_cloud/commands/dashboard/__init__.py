"""Commands that show a landing: `dashboard` in a browser, `plot` in a file."""
