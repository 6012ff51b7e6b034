"""The values that the views of the page show."""
