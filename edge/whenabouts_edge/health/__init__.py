"""How the agent is: status file, metrics, the service manager, and `doctor`."""
