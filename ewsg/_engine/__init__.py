"""The machinery behind `sample`: plan of steps, starting points, the compiled loop and its driver."""
