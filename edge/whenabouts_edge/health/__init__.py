"""Health of the agent: status file, metrics, the service manager, and `doctor`."""
