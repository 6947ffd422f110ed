"""The agent: the gateway session, the daemon section, `daemon.upgrade`, and the restart into another binary."""
