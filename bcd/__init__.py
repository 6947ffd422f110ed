"""bcd, the agent on every machine of a compute fleet: it replaces its own binary, and swaps it back when it must."""

__version__ = "0.1.0"
