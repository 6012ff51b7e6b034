"""The Spark session: its Java, its Python workers, and its archive of Java classes."""
