"""The command line. Each command is imported when it is asked for; errors end as one line and an exit code."""

from __future__ import annotations

import sys

try:
    import importlib
    import os
    from collections.abc import Mapping
    from typing import TYPE_CHECKING

    import click

    from neuco_core import __version__
    from neuco_core.cli.output import clean, end_stdout, keep_stdout
    from neuco_core.env import switched_on
    from neuco_core.errors import EXIT_CODES, NeucoError, PluginError
except KeyboardInterrupt:
    # These imports are most of the time before main(), which would say the same.
    sys.stderr.write("neuco: interrupted\n")
    sys.exit(130)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from neuco_core.plugins.discovery import BrokenPlugin

# Command → where it is. The modules import nothing heavier than click before a command runs.
COMMANDS = {
    "ablate": "neuco_core.cli.ablate:ablate",
    "bench": "neuco_core.cli.bench:bench",
    "capabilities": "neuco_core.cli.capabilities:capabilities",
    "challenge": "neuco_core.cli.challenge:challenge",
    "check": "neuco_core.cli.check:check",
    "compare": "neuco_core.cli.compare:compare",
    "data": "neuco_core.cli.data:data",
    "datasets": "neuco_core.cli.listing:datasets",
    "doctor": "neuco_core.cli.doctor:doctor",
    "embed": "neuco_core.cli.embed:embed",
    "explain": "neuco_core.cli.verify:explain",
    "geobench": "neuco_core.cli.geobench:geobench",
    "leaderboard": "neuco_core.cli.leaderboard:leaderboard",
    "methods": "neuco_core.cli.listing:methods",
    "new": "neuco_core.cli.new:new",
    "plugins": "neuco_core.cli.listing:plugins",
    "protocols": "neuco_core.cli.listing:protocols",
    "score": "neuco_core.cli.score:score",
    "show": "neuco_core.cli.show:show",
    "suites": "neuco_core.cli.listing:suites",
    "tasks": "neuco_core.cli.listing:tasks",
    "tune": "neuco_core.cli.tune:tune",
    "validate": "neuco_core.cli.embed:validate",
    "verify": "neuco_core.cli.verify:verify",
}
# How the help shows them; a test sees to it that none is missing.
GROUPS = {
    "Score": "score compare ablate tune leaderboard capabilities bench geobench challenge",
    "Look up": "tasks methods datasets suites protocols show plugins",
    "Bring your own": "new check embed validate",
    "Data and records": "data verify explain doctor",
}
CODES = ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())


class CommandTable(click.Group):
    """Commands from a table of places, each imported when it is asked for."""

    table: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.table:
            return None
        module, _, attribute = self.table[name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.list_commands(ctx))
            if not close:
                raise
            words = f"{error.message} Did you mean {' or '.join(map(repr, close))}?"
            raise click.UsageError(words, ctx) from error


class Main(CommandTable):
    """Neuco's own commands, and those of other packages by their entry points ``neuco.commands``."""

    table = COMMANDS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        entries = [] if name in COMMANDS else _other_commands().get(name, [])
        return _plugin_command(name, entries) if entries else super().get_command(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            commands = {name: CommandTable.get_command(self, ctx, name) for name in names.split()}
            with formatter.section(title):
                formatter.write_dl([(name, found.get_short_help_str(90)) for name, found in commands.items() if found])
        # Named, not imported: a command of another package must not make the help slow or break it.
        entries = [entry for name, entries in _other_commands().items() if name not in COMMANDS for entry in entries]
        rows = [(entry.name, f"From {entry.dist.name}." if entry.dist else "") for entry in entries]
        if rows:
            with formatter.section("Commands of other packages"):
                formatter.write_dl(rows)


def _other_commands() -> dict[str, list[EntryPoint]]:
    from neuco_core.plugins.discovery import installed_entry_points

    by_name: dict[str, list[EntryPoint]] = {}
    for entry in sorted(installed_entry_points()[0].select(group="neuco.commands"), key=lambda entry: entry.name):
        by_name.setdefault(entry.name, []).append(entry)
    return by_name


def _sources(entries: list[EntryPoint]) -> str:
    return " and ".join(f"{entry.dist.name if entry.dist else '?'} ({entry.value})" for entry in entries)


def survey_commands() -> tuple[dict[str, str], list[BrokenPlugin]]:
    """The commands of other packages with the source of each, and those that cannot be used; all are imported."""
    from neuco_core.plugins.discovery import BrokenPlugin

    working, broken = {}, []
    for name, entries in _other_commands().items():
        try:
            _plugin_command(name, entries)
            working[name] = _sources(entries)
        except PluginError as error:
            broken.append(BrokenPlugin(name, _sources(entries), "command", error.what))
    return working, broken


def _plugin_command(name: str, entries: list[EntryPoint]) -> click.Command:
    from neuco_core.plugins.guard import Interrupted, plugin_code
    from neuco_core.plugins.loading import hooks_of, say

    sources = _sources(entries)
    if name in COMMANDS:
        raise PluginError(f"neuco itself has a command {name!r}", where=sources, hint="Rename the other one")
    if len(entries) > 1:
        raise PluginError(f"two packages provide the command {name!r}", where=sources, hint="Remove one of them")
    try:
        with plugin_code():
            results = hooks_of(entries[0].load())["neuco_commands"][0]()
            commands: dict[str | None, click.Command] = {item.name: item for result in results for item in result}
    except Interrupted:
        raise
    except BaseException as error:
        text = f"the command {name!r} cannot be loaded: {say(error)}"
        raise PluginError(text, where=sources, hint="Repair or remove that package") from error
    if not isinstance(commands.get(name), click.Command):
        raise PluginError(f"provides no click command named {name!r}", where=sources, got=sorted(map(str, commands)))
    return commands[name]


@click.group(cls=Main, epilog=f"Exit codes: {CODES}.", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="neuco")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, also of a method's own code.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Compare small fixed-size embeddings: tasks, methods and scores as plugins."""
    if debug:
        _tell_workers(ctx)
    if ctx.invoked_subcommand in COMMANDS:  # a command of another package may want its own standard output
        keep_stdout()
    if ctx.invoked_subcommand != "doctor":  # which tells of it beside all else that is wrong
        from neuco_core.fetch.cache import cache_dir

        cache_dir()  # raises now, and not when an hour of scoring is to be stored


def _tell_workers(ctx: click.Context) -> None:
    """Workers and checks print the tracebacks of what they survive, for as long as this command runs."""
    before = os.environ.get("NEUCO_DEBUG", "")
    os.environ["NEUCO_DEBUG"] = "1"
    ctx.call_on_close(lambda: os.environ.__setitem__("NEUCO_DEBUG", before))


def main(args: list[str] | None = None) -> None:
    """Run the command line and end the process with a documented exit code."""
    args = sys.argv[1:] if args is None else args
    debug = False
    try:
        debug = _debug(args)
        code = cli.main(args, prog_name="neuco", standalone_mode=False, obj=tuple(args))
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader, e.g. `head`, has seen enough; Python must not complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        code = _report(error)
    end_stdout()
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: BaseException) -> int:
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        doing = str(error.__cause__ or error)  # click makes an interrupt an Abort
        click.echo(clean("neuco: interrupted" + (f" {doing}" if doing else "")), err=True)
        return 130
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, NeucoError):
        click.echo(clean(f"neuco: error: {error}"), err=True)
        return error.exit_code
    text = " ".join(f"{type(error).__name__}: {error}".split())
    words = f"neuco: unexpected error: {text}. Run `neuco --debug …` for the traceback and report it"
    click.echo(clean(words), err=True)
    return 1


def _debug(args: list[str]) -> bool:
    before_command = args[: next((i for i, arg in enumerate(args) if not arg.startswith("-")), len(args))]
    return "--debug" in before_command or switched_on("NEUCO_DEBUG")
