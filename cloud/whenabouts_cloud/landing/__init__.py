"""The landing: the folder of Parquet files that the ingest writes and jobs read."""
