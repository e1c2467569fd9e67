"""What the server of a challenge bears: ``python benchmarks/serve.py [--uploads 400] [--clients 100] [--bytes N]``.

Clients upload at once to a real server on the loopback, which evaluates nothing meanwhile; as many again send half a
file and are cut, or trickle. One that is refused (429, 503) tries again until ``--seconds`` are over. Printed is what
was sent, accepted and refused, how long an accepted upload took from its first byte to its answer, and the server's
memory before and at its peak. Accepted files are compared with the journal at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tests.challenge.server import Server, open_challenge, serving


class Load:
    """The clients, and what they saw."""

    def __init__(self, server: Server, teams: tuple[str, ...], size: int, until: float) -> None:
        self.server, self.teams, self.size, self.until = server, teams, size, until
        self.answers: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.accepted: set[tuple[str, str]] = set()
        self.sent = 0

    def upload(self, number: int) -> None:
        team, body = self.teams[number % len(self.teams)], random.Random(number).randbytes(self.size)
        while time.monotonic() < self.until:
            start = time.perf_counter()
            try:
                status = self.server.put(body, team).status
            except OSError as error:  # a server that closes at once while much is still to be sent
                self.answers[type(error).__name__] += 1
                status = 503
            else:
                self.answers[str(status)] += 1
                self.sent += self.size
            if status == 201:
                self.seconds.append(time.perf_counter() - start)
                self.accepted.add((team, sha256(body).hexdigest()))
                return
            time.sleep(random.uniform(0.1, 1.0))

    def cut(self, number: int) -> None:
        """Half a file; every other one then stays, and sends a byte now and then."""
        with self.server.connect() as connection:
            head = self.server.head(self.teams[number % len(self.teams)], f"Content-Length: {self.size}")
            try:
                connection.sendall(head + bytes(self.size // 2))
                for _ in range(20 if number % 2 else 0):
                    time.sleep(0.1)
                    connection.sendall(b"x")
            except OSError:
                self.answers["cut by the server"] += 1


def figures(load: Load) -> dict[str, Any]:
    taken = np.array(load.seconds or [np.nan])
    p50, p99 = (round(float(value), 3) for value in np.quantile(taken, [0.5, 0.99]))
    journal = {(own.team, own.sha256) for own in load.server.journal()}
    return {
        "answers": dict(sorted(load.answers.items())),
        "accepted": len(load.accepted),
        "lost": len(load.accepted - journal),
        "entered_unasked": len(journal - load.accepted),
        "sent_mb": round(load.sent / 1e6),
        "p50_s": p50,
        "p99_s": p99,
        "left_over_files": len(load.server.incoming()),
        "memory_peak_mb": round(load.server.memory("VmHWM") / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uploads", type=int, default=400)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--teams", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0)
    args = parser.parse_args()
    teams = tuple(f"team{number:02}" for number in range(args.teams))
    rules = {"per_day = 3\nin_all = 6": "per_day = 9999\nin_all = 9999", "bytes = 100_000": f"bytes = {args.bytes}"}
    with tempfile.TemporaryDirectory() as folder:
        open_challenge(Path(folder), rules, teams=teams)
        with serving(Path(folder)) as server:
            server.ask("GET", "/api/challenge")
            before = round(server.memory() / 1e6)
            load = Load(server, teams, args.bytes, time.monotonic() + args.seconds)
            start = time.perf_counter()
            with ThreadPoolExecutor(2 * args.clients) as pool:
                for number in range(args.uploads):
                    pool.submit(load.upload, number)
                    pool.submit(load.cut, number)
            seconds = round(time.perf_counter() - start, 1)
            found = {"uploads": args.uploads, "clients": args.clients, "bytes": args.bytes, "seconds": seconds}
            found |= {"memory_before_mb": before, **figures(load)}
    found |= {"cores": len(os.sched_getaffinity(0)), "load_average": round(os.getloadavg()[0], 1)}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
