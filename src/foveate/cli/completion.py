"""`completion`: a script that teaches a shell to complete foveate's commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from foveate.cli.call import Verb

VARIABLE = "_FOVEATE_COMPLETE"


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    `eval "$(foveate completion bash)"` puts it to use; put that line into ~/.bashrc to keep it.
    """
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "foveate", VARIABLE).source())


VERBS = {"completion": completion}
