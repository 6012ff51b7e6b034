"""The timeline as a picture: the same shapes as SVG and as PNG; its data as CSV and Parquet."""
