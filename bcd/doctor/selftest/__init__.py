"""`bcd doctor --self-test`: every check proved on this very machine, against a small node in a temporary directory."""
