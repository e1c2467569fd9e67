"""A challenge with hidden tasks: rules, a journal of submissions, evaluation, feedback, board and audit.

Every way in (the command line, the web server, the worker of EvalAI) uses one object::

    from neuco_extensions.challenge.host import Host
    from neuco_extensions.challenge.journal import RefusedError

    with Host(folder) as host:                         # challenge.toml, sealed; one for each thread and process
        team = host.challenge.team_of(token)           # None: no such token; compared in constant time
        try:
            entry = host.submit(team, "dev", chunks_or_path, source="evalai:12")   # on disk and in the journal
        except RefusedError as error:                  # error.code, str(error): a fixed sentence for the team
            ...
        for done in evaluate_waiting(host, start_engine("local", 2), 2):     # of ``workers``: all that waits
            ...
        host.answer(entry.id, team)                    # what the team may see, and when
        host.journal.get(entry.id)                     # what the hosts may: state, code, feedback, scores, detail

An upload in parts, as of an asynchronous server, is ``host.Upload`` and then ``host.journal.enter(…, upload)``.
``host.evaluate(phase, path)`` scores a file and keeps nothing. ``host.challenge.public()`` is what anybody may read of
the rules. The same file of a team in a phase, or the same ``source``, is one submission: give it twice and it counts
once.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuco_core.hookspecs import hookimpl
from neuco_core.specs import BoardKind, Command, Panel

HERE = "neuco_extensions.challenge"


@hookimpl
def neuco_commands() -> Iterator[Command]:
    yield Command(id="challenge", title="Host a challenge with hidden tasks", command=f"{HERE}.command:challenge")


@hookimpl
def neuco_boards() -> Iterator[BoardKind]:
    yield BoardKind(
        id="challenge",
        title="A challenge: teams by their submission that counts",
        rank=f"{HERE}.board:rank_teams",
        options={"by": "weighted"},
    )


@hookimpl
def neuco_panels() -> Iterator[Panel]:
    yield Panel(
        id="challenge-history", title="History", data=f"{HERE}.past_page:history_of_page", template=f"{HERE}:past.html"
    )
