"""From the table of verbs to typer, and from the words behind a verb to what was given for its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import typer

from nereus_cli.cli.exits import MEANINGS, usage
from nereus_cli.cli.options import EVERYWHERE, VERSION, Option, Verb
from nereus_cli.cli.split import HELP, Help, Split
from nereus_cli.cli.verbs import VERBS

_ABOUT: Final = "A durable scheduler for delayed commands. Not affiliated with Nereus Delay."


def parse(split: Split) -> dict[str, list[str] | bool]:
    """What was given for each option of the verb; raises Help or a usage Failure."""
    given: dict[str, list[str] | bool] = {}

    def take(**values: Any) -> None:  # noqa: ANN401 -- typer passes what the table declares
        given.update({spelled(option): values[_keyword(option)] for option in _options(split.verb)})
        if split.verb.argument is not None:
            given["argument"] = _as_list(values["argument"])

    command = typer.main.get_command(_app((split.verb,), take))
    name = f"prepare {split.verb.name}" if split.prepare else split.verb.name
    try:
        command.main(split.words, prog_name=f"nereus {name}", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        said = getattr(error, "format_message", None)
        if said is None:
            raise
        raise usage(_hinted(said(), split)) from None
    for option in _options(split.verb):
        if option.refused and given.get(option.name):
            raise usage(f"{option.spelling}: {option.refused}", field=option.name)
    return given


def overview() -> str:
    """What ``nereus --help`` prints."""

    def nothing(**_: Any) -> None:  # noqa: ANN401 -- never called
        return

    command = typer.main.get_command(_app(VERBS, nothing))
    try:
        command.main([HELP], prog_name="nereus", standalone_mode=False)
    except Help as text:
        statuses = "\n".join(f"  {status:>3}  {meaning}" for status, meaning in MEANINGS.items())
        return f"{text}\n\nExit statuses:\n{statuses}\n"
    raise AssertionError(HELP)


def spelled(option: Option) -> str:
    """The name under which handlers find an option."""
    return option.name


def _hinted(message: str, split: Split) -> str:
    """The parser's sentence on one line, with the nearest help."""
    text = " ".join(message.split())
    if split.verb.command and "unexpected extra argument" in text:
        text = f"{text.rstrip('.')}: a command goes behind --, as in {split.verb.example}"
    return f"{text.rstrip('.')}. Try: nereus {split.verb.name} --help"


def _options(verb: Verb) -> tuple[Option, ...]:
    return (*verb.options, *EVERYWHERE)


def _keyword(option: Option) -> str:
    """A Python name for an option: some of them are words of the language."""
    return "option_" + option.name.replace("-", "_")


def _as_list(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []


def _app(verbs: tuple[Verb, ...], take: Callable[..., None]) -> typer.Typer:
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    settings = {"help_option_names": [], "max_content_width": 100}
    for verb in verbs:
        more = (f"nereus {one.name}: {one.summary}" for one in verb.subverbs)
        text = "\n\n".join(filter(None, (verb.summary, verb.details, *more, f"Example: {verb.example}")))
        register = app.command(
            verb.name,
            help=text,
            short_help=verb.summary,
            context_settings=settings,
            options_metavar="[OPTIONS] -- COMMAND [ARG]..." if verb.command else "[OPTIONS]",
        )
        register(_with_signature(verb, take))
    if len(verbs) > 1:
        app.callback(help=_ABOUT, context_settings=settings)(_with_help())
    return app


def _with_signature(verb: Verb, take: Callable[..., None]) -> Callable[..., None]:
    """A function that looks to typer as if it had been written with these options."""

    def function(**values: Any) -> None:  # noqa: ANN401 -- its signature is made of the table
        take(**values)

    parameters = [_parameter(option) for option in _options(verb)]
    if verb.argument is not None:
        kind = list[str] if verb.argument.many else str
        default = typer.Argument(..., metavar=verb.argument.name + ("..." if verb.argument.many else ""))
        parameters.append(
            inspect.Parameter("argument", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        )
    function.__signature__ = inspect.Signature([*parameters, _help_parameter()])  # type: ignore[attr-defined] # how typer is told
    function.__annotations__ = {}
    return function


def _with_help() -> Callable[..., None]:
    def function(**_: Any) -> None:  # noqa: ANN401 -- as above
        return

    parameters = [*map(_parameter, (*EVERYWHERE, VERSION)), _help_parameter()]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # as above
    function.__annotations__ = {}
    return function


def _parameter(option: Option) -> inspect.Parameter:
    names = [option.spelling, *([option.short] if option.short else [])]
    hidden = bool(option.refused)
    if option.metavar:
        default: Any = typer.Option(
            [], *names, help=option.help, metavar=option.metavar, hidden=hidden, show_default=False
        )
        kind: Any = list[str]
    else:
        default = typer.Option(False, *names, help=option.help, hidden=hidden, show_default=False)
        kind = bool
    return inspect.Parameter(_keyword(option), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _help_parameter() -> inspect.Parameter:
    option = typer.Option(
        False,
        HELP,
        "-h",
        is_eager=True,
        expose_value=False,
        callback=_show_help,
        help="Print this.",
        show_default=False,
    )
    return inspect.Parameter("help", inspect.Parameter.KEYWORD_ONLY, default=option, annotation=bool)


def _show_help(context: typer.Context, value: bool) -> None:
    if value:
        raise Help(context.get_help())
