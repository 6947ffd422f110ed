"""The privileged half of an unprivileged node, and its client (spec/self-update.md section 10)."""
