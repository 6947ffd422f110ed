"""Tests of bcd, in folders that mirror it. A package, so that no other `tests` on the path can stand before it."""
