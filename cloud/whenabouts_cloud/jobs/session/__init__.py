"""The Spark session: its Java, its workers, and what is compiled before the first job."""
