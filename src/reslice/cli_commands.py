"""How commands are declared and how their help reads: examples first, commands in sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose help begins with examples."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then what click writes."""
        write_examples(self.examples, formatter)
        super().format_help(ctx, formatter)


class Group(click.Group):
    """The root command, whose help lists its commands in sections."""

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Sequence[click.Command]],
        examples: Sequence[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples
        self.sections = sections
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then what click writes."""
        write_examples(self.examples, formatter)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section with one line per command."""
        width = max(len(name) for name in self.commands)
        for title, commands in self.sections.items():
            with formatter.section(title.capitalize()):
                rows = [(f"{command.name or '':<{width}}", command.get_short_help_str(90)) for command in commands]
                formatter.write_dl(rows)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write commands that can be pasted, as they are: never wrapped."""
    if not examples:
        return
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
    formatter.write_paragraph()


def confirmed(question: str) -> bool:
    """Whether a person says yes; one who leaves instead, with Ctrl-C, leaves a line that is ended."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise


def json_option(function: Function) -> Function:
    """Add --json."""
    return click.option("--json", "is_json", is_flag=True, help="Answer with one JSON value on stdout.")(function)


def scope_options(function: Function) -> Function:
    """Add what says which slices are meant: TARGET, RANGE and the options that stand in for them."""
    for decorate in reversed(
        [
            click.argument("target", required=False),
            click.argument("range", required=False),
            click.option(
                "--interval",
                nargs=2,
                metavar="START END",
                help="A scheduler's interval in place of RANGE; END is not included.",
            ),
            click.option("--again", metavar="RUN", help="The target and range of an earlier run, in place of RANGE."),
        ]
    ):
        function = decorate(function)
    return function


def affected_option(function: Function) -> Function:
    """Add --with-affected."""
    help_text = "Add the other slices that the same corrections touch."
    return click.option("--with-affected", is_flag=True, help=help_text)(function)
