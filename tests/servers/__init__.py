"""PostgreSQL and MLflow's server on this machine, for tests and measurements."""
