"""Nothing to tune: `ewsg.plan` measures a posterior and finds out how to sample it."""
