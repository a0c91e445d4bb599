"""The core against the workshop: the same weights, messages, bytes, seconds, schedules, staleness and residuals."""
