"""The command line. Each command is imported when it is asked for; errors end as one line and an exit code."""

from __future__ import annotations

import sys

try:
    import os
    from collections.abc import Mapping
    from contextlib import suppress

    import click

    from neuco_core import __version__
    from neuco_core.cli.output import OwnStream, clean, keep_stdout
    from neuco_core.env import switched_on
    from neuco_core.errors import NeucoError, PluginError
    from neuco_core.fetch.cache import cache_dir
    from neuco_core.plugins.catalog import catalog
    from neuco_core.plugins.discovery import BrokenPlugin
    from neuco_core.plugins.loading import say
    from neuco_core.plugins.running import Interrupted, plugin_code
    from neuco_core.specs import Command, resolve
except KeyboardInterrupt:
    # These imports are most of the time before main(), which would say the same.
    sys.stderr.write("neuco: interrupted\n")
    sys.exit(130)

CLI = "neuco_core.cli"
# As the help shows them: command → where it is, and its line. A module is imported when its command is asked for, so it
# may import at its top what it needs; those that list what is registered stay as light as this one.
GROUPS = {
    "Score": {
        "score": (f"{CLI}.score:score", "Score embeddings or methods on tasks"),
        "compare": (f"{CLI}.compare:compare", "Test whether one method is better than another"),
        "leaderboard": (f"{CLI}.leaderboard:leaderboard", "Rank methods: show, build and publish boards"),
    },
    "Look up": {
        "tasks": (f"{CLI}.listing:tasks", "List tasks"),
        "methods": (f"{CLI}.listing:methods", "List methods"),
        "datasets": (f"{CLI}.listing:datasets", "List datasets"),
        "suites": (f"{CLI}.listing:suites", "List suites: tasks that are ranked together"),
        "protocols": (f"{CLI}.listing:protocols", "List protocols: how scores are computed"),
        "show": (f"{CLI}.show:show", "Show details of a task, method, dataset, …"),
        "plugins": (f"{CLI}.listing:plugins", "List plugins, and what is wrong with broken ones"),
    },
    "Bring your own": {
        "new": (f"{CLI}.new:new", "Start a dataset, a task or a method"),
        "check": (f"{CLI}.check:check", "Check a task, a method or a file of embeddings"),
        "embed": (f"{CLI}.embed:embed", "Write a method's embeddings of a dataset"),
    },
    "Data and records": {
        "data": (f"{CLI}.data:data", "Fetch, check, pin, package and upload data"),
        "verify": (f"{CLI}.verify:verify", "Re-run scores and compare them with their records"),
        "explain": (f"{CLI}.verify:explain", "Explain why a score is cached, stale or missing"),
        "doctor": (f"{CLI}.doctor:doctor", "Check the installation"),
    },
}
COMMANDS = {name: target for commands in GROUPS.values() for name, (target, _) in commands.items()}


class CommandTable(click.Group):
    """Commands from a table of places, each imported when it is asked for."""

    table: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return resolve(self.table[name]) if name in self.table else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:  # click itself looks for the likely one among commands that are loaded
            from difflib import get_close_matches  # only after a mistake

            close = get_close_matches(args[0], self.list_commands(ctx))
            if not close:
                raise
            message = f"{error.message} Did you mean {' or '.join(map(repr, close))}?"
            raise click.UsageError(message, ctx) from error


class Main(CommandTable):
    """Neuco's own commands, and those that extensions and other packages register."""

    table = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *_registered()[0]})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            own: click.Command = resolve(COMMANDS[name])
            return own
        commands, broken = _registered()
        text, hint = f"the command {name!r} cannot be loaded", "Repair or remove that plugin"
        if name not in commands:
            for plugin in broken:
                if plugin.name == name:
                    raise PluginError(f"{text}: {plugin.error}", where=plugin.file or plugin.source, hint=hint)
            return None
        spec = commands[name]
        try:
            with plugin_code():
                command = resolve(spec.command)
        except Interrupted:
            raise
        except BaseException as error:
            raise PluginError(f"{text}: {say(error)}", where=spec.origin, hint=hint) from error
        if not isinstance(command, click.Command):
            raise PluginError(f"{name!r} is no click command", where=spec.origin, got=type(command).__name__)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Named, not imported: no command may make the help slow or break it.
        sections = {title: [(name, line) for name, (_, line) in commands.items()] for title, commands in GROUPS.items()}
        registered, _ = _registered()
        sections["Extensions"] = [(spec.id, spec.title or f"From {spec.origin}.") for spec in registered.values()]
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _registered() -> tuple[dict[str, Command], list[BrokenPlugin]]:
    """The commands of extensions and other packages by name, and the plugins that cannot be used."""
    specs, broken = catalog().plugins.collect("command")
    commands = {name: spec for name, spec in specs.items() if isinstance(spec, Command) and name not in COMMANDS}
    return commands, broken


def plugin_problems() -> list[BrokenPlugin]:
    """What is wrong with plugins; also commands that are named like ours, and so cannot be run."""
    specs, _ = catalog().plugins.collect("command")
    shadowed = [
        BrokenPlugin(name, str(spec.origin), "command", f"neuco itself has a command {name!r}")
        for name, spec in specs.items()
        if name in COMMANDS
    ]
    return [*catalog().problems(), *shadowed]


CODES = "Exit codes: 0 success, 1 something failed, 2 wrong use; `neuco COMMAND --help` and the manual list the others."


@click.group(cls=Main, epilog=CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="neuco")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, also of a method's own code.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Compare small fixed-size embeddings: tasks, methods and scores as plugins."""
    if debug:  # workers and checks, too, print the tracebacks of what they survive while this command runs
        before = os.environ.get("NEUCO_DEBUG", "")
        os.environ["NEUCO_DEBUG"] = "1"
        ctx.call_on_close(lambda: os.environ.__setitem__("NEUCO_DEBUG", before))
    if ctx.invoked_subcommand in COMMANDS:  # a command of another package may want its own standard output
        keep_stdout()
    for variable in ("NEUCO_OFFLINE", "NEUCO_STRICT"):
        switched_on(variable)  # a word that is no boolean is an error now, and not only where it matters
    if ctx.invoked_subcommand != "doctor":  # which reports it beside all else that is wrong
        cache_dir()  # raises now, and not when an hour of scoring is to be stored


def main(args: list[str] | None = None) -> None:
    """Run the command line and end the process with a documented exit code."""
    args = sys.argv[1:] if args is None else args
    debug = False
    try:
        first = next((number for number, arg in enumerate(args) if not arg.startswith("-")), len(args))
        debug = "--debug" in args[:first] or switched_on("NEUCO_DEBUG")
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
    if isinstance(sys.stdout, OwnStream):  # the answer is complete: what a plugin prints from now on goes to stderr
        with suppress(OSError):
            sys.stdout.flush()
        sys.stdout = sys.stderr
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: BaseException) -> int:
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        doing = str(error.__cause__ or error)  # click makes an interrupt an Abort
        click.echo(clean("neuco: interrupted" + (f" {doing}" if doing else "")), err=True)
        return 130
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the help
        error.show()
        return error.exit_code
    if isinstance(error, click.ClickException):
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f" See `{error.ctx.command_path} --help`."
        click.echo(clean(f"neuco: error: {error.format_message()}{hint}"), err=True)
        return error.exit_code
    if isinstance(error, NeucoError):
        hint = ". `neuco --debug …` shows the traceback" if isinstance(error, PluginError) and error.__cause__ else ""
        click.echo(clean(f"neuco: error: {error}{hint}"), err=True)
        return error.exit_code
    text = " ".join(f"{type(error).__name__}: {error}".split())
    message = f"neuco: unexpected error: {text}. Run `neuco --debug …` for the traceback and report it"
    click.echo(clean(message), err=True)
    return 1
