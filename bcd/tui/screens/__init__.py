"""One screen a file. Each shows the app's snapshot and asks it for actions."""
