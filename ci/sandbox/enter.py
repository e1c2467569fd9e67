"""The first program inside the sandbox, before any contributed code: hand out the folders, set limits, go on.

    python -I -S -c TEXT FD LIMITS COMMAND...

The folders are in memory and would vanish with the sandbox; whoever holds one open can look into it, also afterwards.
"""

import json
import os
import resource
import shutil
import socket
import sys

WARM = "/warm"
FOLDERS = ("/out", "/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own

if __name__ == "__main__":
    channel, limits, *command = sys.argv[1:]
    folders = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in FOLDERS]
    with socket.socket(fileno=int(channel)) as outside:
        socket.send_fds(outside, [b"."], folders)
    if os.path.isdir(WARM):  # noqa: PTH112 - this file is read before the interpreter has its packages
        shutil.copytree(WARM, os.environ["NUMBA_CACHE_DIR"])
    for name, most in json.loads(limits).items():
        resource.setrlimit(getattr(resource, name), (most, most))
    os.execv(command[0], command)  # noqa: S606 - nothing else is wanted
