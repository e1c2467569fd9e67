"""Run untrusted code with nothing in reach: no network, no secrets, a read-only tree, limits on everything.

``bubblewrap`` is the sandbox. ``trust`` is none: the code has all your rights, within limits of time, memory,
processes and files; it is for your own code on a machine without bubblewrap, and only when it is asked for by name.
``Ran.engine`` says which of the two was used, and so does every report.
"""

from ci.sandbox.bubblewrap import protections
from ci.sandbox.limits import OUT, TREE, WARM, Limits, SandboxError
from ci.sandbox.run import KEPT, Ran, engine, run

__all__ = ["KEPT", "OUT", "TREE", "WARM", "Limits", "Ran", "SandboxError", "engine", "protections", "run"]
