"""A whole world on one machine: gateway, release server, releases good and bad, real nodes in sandboxed roots.

Everything lies beneath one directory and speaks over loopback; no root, no internet. `World` is the door.
"""
