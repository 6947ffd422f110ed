"""The `bcd` command's parts, each opened only when it is asked for. Nothing imports this layer."""
