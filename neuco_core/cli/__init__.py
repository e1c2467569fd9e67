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
    from neuco_core.plugins.discovery import BrokenPlugin
    from neuco_core.specs import Command

# Command → where it is. The modules import nothing heavier than click before a command runs.
COMMANDS = {
    "check": "neuco_core.cli.check:check",
    "compare": "neuco_core.cli.compare:compare",
    "data": "neuco_core.cli.data:data",
    "datasets": "neuco_core.cli.listing:datasets",
    "doctor": "neuco_core.cli.doctor:doctor",
    "embed": "neuco_core.cli.embed:embed",
    "explain": "neuco_core.cli.verify:explain",
    "leaderboard": "neuco_core.cli.leaderboard:leaderboard",
    "methods": "neuco_core.cli.listing:methods",
    "new": "neuco_core.cli.new:new",
    "plugins": "neuco_core.cli.listing:plugins",
    "protocols": "neuco_core.cli.listing:protocols",
    "score": "neuco_core.cli.score:score",
    "show": "neuco_core.cli.show:show",
    "suites": "neuco_core.cli.listing:suites",
    "tasks": "neuco_core.cli.listing:tasks",
    "validate": "neuco_core.cli.embed:validate",
    "verify": "neuco_core.cli.verify:verify",
}
# How the help shows them; a test sees to it that none is missing.
GROUPS = {
    "Score": "score compare leaderboard",
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
    """Neuco's own commands, and those that extensions and other packages register."""

    table = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *_registered()[0]})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            return super().get_command(ctx, name)
        commands, broken = _registered()
        if name in commands:
            return _load(commands[name])
        for plugin in broken:
            if plugin.name == name:
                text = f"the command {name!r} cannot be loaded: {plugin.error}"
                raise PluginError(text, where=plugin.file or plugin.source, hint="Repair or remove that plugin")
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            commands = {name: CommandTable.get_command(self, ctx, name) for name in names.split()}
            with formatter.section(title):
                formatter.write_dl([(name, found.get_short_help_str(90)) for name, found in commands.items() if found])
        # Named, not imported: a command of an extension must not make the help slow or break it.
        registered, _ = _registered()
        rows = [(spec.id, spec.title or f"From {spec.origin}.") for spec in registered.values()]
        if rows:
            with formatter.section("Extensions"):
                formatter.write_dl(rows)


def _registered() -> tuple[dict[str, Command], list[BrokenPlugin]]:
    """The commands of extensions and other packages by name, and the plugins that cannot be used."""
    from neuco_core.plugins.catalog import catalog
    from neuco_core.specs import Command

    specs, broken = catalog().plugins.collect("command")
    commands = {name: spec for name, spec in specs.items() if isinstance(spec, Command) and name not in COMMANDS}
    return commands, broken


def _load(spec: Command) -> click.Command:
    from neuco_core.plugins.guard import Interrupted, plugin_code
    from neuco_core.plugins.loading import say
    from neuco_core.specs import resolve

    try:
        with plugin_code():
            command = resolve(spec.command)
    except Interrupted:
        raise
    except BaseException as error:
        text = f"the command {spec.id!r} cannot be loaded: {say(error)}"
        raise PluginError(text, where=spec.origin, hint="Repair or remove that plugin") from error
    if not isinstance(command, click.Command):
        raise PluginError(f"{spec.id!r} is no click command", where=spec.origin, got=type(command).__name__)
    return command


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
