"""Hours of the real processes under random kills, judged against what truly happened."""
