"""Readings from the log files of others, brought into the landing beside what gateways send."""
