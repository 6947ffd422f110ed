"""What both ends of a session agree on before the first frame, apart from the frames, which cost a doctor 50 ms to load."""

SUBPROTOCOL = "bcd.node.v1"
PROTOCOL = 1
FRAME_LIMIT_BYTES = 4 * 1024 * 1024
