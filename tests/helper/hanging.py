"""A file system that never answers, mounted at argv[1] as if by the uid argv[2], until standard input ends."""

import ctypes
import os
import sys

_POINT, _UID = sys.argv[1:3]
_device = os.open("/dev/fuse", os.O_RDWR)
_options = f"fd={_device},rootmode=40000,user_id={_UID},group_id={_UID},allow_other"
_libc = ctypes.CDLL(None, use_errno=True)
if _libc.mount(b"attack", _POINT.encode(), b"fuse", 0, _options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
sys.stdout.write("mounted\n")
sys.stdout.flush()
sys.stdin.read()
os.close(_device)
