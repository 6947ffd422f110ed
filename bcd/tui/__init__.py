"""The console: screens and widgets over one source of what the node is. Decides nothing, writes nothing but by core."""
