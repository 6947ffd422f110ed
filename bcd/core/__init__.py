"""The rules of self-update and the disk they live on; draws nothing, logs sparingly."""
