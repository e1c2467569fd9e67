"""Shell completion of ids."""

from __future__ import annotations

from collections.abc import Callable

import click


def ids_of(*nouns: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A completer for the ids of some nouns, e.g. ``ids_of("task", "method")``."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from neuco_core.plugins.catalog import catalog

        ids: set[str] = set()
        for noun in nouns:
            if noun == "suite":
                ids.update(catalog().survey_suites()[0])
            elif "@" in incomplete:
                ids.update(catalog().plugins.versions(noun, incomplete))
            else:
                ids.update(catalog().plugins.collect(noun)[0])
        return sorted(name for name in ids if name.startswith(incomplete))

    return complete
