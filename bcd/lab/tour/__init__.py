"""The tour: every scenario on a node of its own, watched live, told as a table."""
