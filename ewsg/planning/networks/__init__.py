"""Networks: no mode to whiten at, so the step comes from the largest curvature, and predictions are judged."""
