"""A simulated challenge.

Eight processes submit at once, two evaluate, and all of them are killed now and then. Among the submissions are
duplicates, late ones, files that are no embeddings, and more than the quotas allow. At the end everything is recomputed
in a new folder by one process that nobody kills, and the boards are compared; then the audit.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from neuco_extensions.challenge.audit import close, public_files
from neuco_extensions.challenge.host import Host, file_path
from tests.challenge.parts import DEV, IDS, TEST, embed, make_challenge, work

CLIENTS, WORKERS = 8, 2
BAD = ("zip", "text", "ids", "nan", "huge")
Action = tuple[str, str, str, str]


def bad_file(path: Path, kind: str) -> Path:
    """A file that is not what it should be."""
    if kind == "ids":
        return embed(path.with_suffix(".npz"), 1.0, int(path.stem), IDS[:-1])
    lines = ["id,0,1", *(f"{name},0.5,nan" for name in IDS)]
    data = {
        "zip": b"PK\x03\x04" + path.name.encode(),
        "text": f"these are no embeddings: {path.name}\n".encode(),
        "nan": "\n".join([*lines, f"# {path.name}"]).encode(),
        "huge": path.name.encode() * 30_000,
    }[kind]
    path.write_bytes(data)
    return path


def plan(folder: Path, teams: Sequence[str], submissions: int, seed: int) -> list[Action]:
    """What the teams do, in the order in which they mean to; a quarter of it is not as it should be."""
    rng = random.Random(seed)
    actions: list[Action] = []
    for number in range(submissions):
        team = teams[number % len(teams)]
        phase, start = ("dev", DEV) if number < submissions * 2 / 3 else ("test", TEST)
        moment = start + timedelta(days=rng.randrange(3), seconds=rng.randrange(3600))
        path = folder / f"{number}.npz"
        fate = rng.random()
        if fate < 0.08 and actions:
            path = Path(rng.choice(actions)[2])  # the same file again, perhaps of somebody else
        elif fate < 0.2:
            path = bad_file(folder / f"{number}.csv", rng.choice(BAD))
        else:
            embed(path, rng.uniform(0.1, 3), number)
        if fate > 0.95:
            moment += timedelta(days=60)  # long after the end
        actions.append((team, phase, str(path), moment.isoformat()))
    return actions


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.challenge.actor", *words])


def play(folder: Path, actions: Sequence[Action], kills: int, seed: int) -> None:
    """Every action is sent by two clients, so that they race; some are killed, and started again."""
    rng = random.Random(seed)
    done = folder.parent / "done"
    commands: list[tuple[str, ...]] = []
    for client in range(CLIENTS):
        sent = [action for number, action in enumerate(actions) if client in (number % CLIENTS, (number + 3) % CLIENTS)]
        path = folder.parent / f"plan-{client}.json"
        path.write_text(json.dumps(sent))
        commands.append(("submit", str(folder), str(path), str(path.with_suffix(".log"))))
    commands += [("work", str(folder), str(done))] * WORKERS
    running = [start(*command) for command in commands]
    while any(process.poll() is None for process in running[:CLIENTS]) or kills:
        time.sleep(rng.uniform(0.2, 0.6))
        if kills:
            kills -= 1
            victim = rng.randrange(len(running)) if kills % 2 else CLIENTS + kills // 2 % WORKERS
            running[victim].kill()
            running[victim].wait()
            running[victim] = start(*commands[victim])
    done.touch()
    for process in running:
        assert process.wait() == 0


def answers(folder: Path) -> list[tuple[Action, int | str]]:
    """What every client was told."""
    answered = []
    for client in range(CLIENTS):
        sent = json.loads((folder.parent / f"plan-{client}.json").read_text())
        for line in (folder.parent / f"plan-{client}.log").read_text().splitlines():
            number, told = json.loads(line)
            answered.append((tuple(sent[number]), told))
    return answered


def check_complete(folder: Path) -> Counter[str]:
    """Nothing lost, nothing counted twice, nothing accepted that the rules refuse; counts of what happened."""
    counts: Counter[str] = Counter()
    with Host(folder) as host:
        entries = {entry.id: entry for entry in host.journal.submissions()}
        assert len({(entry.team, entry.phase, entry.sha256) for entry in entries.values()}) == len(entries)
        taken: Counter[tuple[str, ...]] = Counter()
        for entry in entries.values():
            assert entry.state in ("scored", "failed"), entry
            counts[f"{entry.state}: {entry.code}"] += 1
            if entry.code not in ("format", "ids"):
                taken[entry.team, entry.phase] += 1
                taken[entry.team, entry.phase, entry.received[:10]] += 1
        for (team, phase, path, moment), told in answers(folder):
            rules = host.challenge.phase(phase)
            late = datetime.fromisoformat(moment) >= rules.end
            if isinstance(told, int):
                assert (entries[told].team, entries[told].phase) == (team, phase)
            else:
                counts[f"refused: {told}"] += 1
                assert told in ("closed", "quota", "size")
                assert (told == "closed") <= late
                assert (told == "size") <= (Path(path).stat().st_size > host.challenge.limits.bytes)
            if told == "quota":  # what waits counts until it is known to be no embeddings
                team_entries = [one for one in entries.values() if (one.team, one.phase) == (team, phase)]
                today = [one for one in team_entries if one.received[:10] == moment[:10]]
                assert len(team_entries) >= rules.in_all or len(today) >= rules.per_day
        for (_, phase, *day), count in taken.items():
            assert count <= (host.challenge.phase(phase).per_day if day else host.challenge.phase(phase).in_all)
    return counts


def recompute(folder: Path) -> bool:
    """Whether one process that nobody disturbs makes the same boards of the same submissions."""
    clean = folder.parent / "clean"
    shutil.copytree(folder, clean, ignore=shutil.ignore_patterns("journal*", "records", "files", "incoming"))
    with Host(folder) as host, Host(clean) as other:
        for entry in host.journal.submissions():
            path = file_path(host.challenge.private, entry.sha256)
            other.submit(entry.team, entry.phase, path, now=datetime.fromisoformat(entry.received))
            work(other)
        boards = [{p.name: data for p, data in public_files(h).items() if p.name[:5] == "board"} for h in (host, other)]
    return boards[0] == boards[1]


def simulate(base: Path, teams: int, submissions: int, kills: int, seed: int = 0) -> tuple[Path, Counter[str]]:
    """Play a challenge to its end and check it; gives its folder and what happened."""
    names = [f"team{number:02d}" for number in range(teams - 1)] + ["base"]
    rules = {"dim = 16": "dim = 16\nattempts = 1000", "per_day = 3\nin_all = 3": "per_day = 4\nin_all = 6"}
    rules["per_day = 3\nin_all = 6"] = "per_day = 6\nin_all = 14"
    folder = make_challenge(base / "challenge", rules, teams=tuple(names))
    (base / "sent").mkdir()
    actions = plan(base / "sent", names, submissions, seed)
    play(folder, actions, kills, seed)
    counts = check_complete(folder)
    assert recompute(folder), "the boards are not those of a clean recomputation"
    with Host(folder) as host:
        close(host)
    return folder, counts
