"""A command, declared once: a function whose parameters are its options, and its columns.

Its call, help(), the command line, JSON Schemas, the tools of agents and the documentation are made
of this declaration.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from inspect import Parameter, Signature
from pkgutil import resolve_name
from typing import (
    Annotated,
    Any,
    Generic,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from nsightpy.command_table import COMMANDS
from nsightpy.errors import NsightpyError
from nsightpy.query.engine import Question, answers
from nsightpy.query.options import DEFAULTS, Common, Option, Reading, Top
from nsightpy.query.request import Request
from nsightpy.report_sets.opening import Paths
from nsightpy.results import Field, Table, View
from nsightpy.results.keys import RowKey

A = TypeVar("A")
# What stands before lines of a docstring that click is not to join.
UNWRAPPED = "\b\n"


@dataclass(frozen=True)
class Argument:
    """A parameter that is given by name: its type, its default, its option (None: undescribed)."""

    name: str
    type: Any
    default: Any = None
    option: Option | None = None

    @classmethod
    def of(cls, name: str, annotation: Any, default: Any = None) -> Argument:
        """The argument of an annotation, which may be Annotated with its Option."""
        if get_origin(annotation) is not Annotated:
            return cls(name, annotation, default)
        kind, *about = get_args(annotation)
        option = next((each for each in about if isinstance(each, Option)), None)
        return cls(name, kind, default, option)

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is Parameter.empty

    @property
    def typed(self) -> str:
        """What is typed for it, without a short form; empty where nothing can be."""
        if self.option is None or self.option.typed == "":
            return ""
        no = "no-" if self.default is True else ""
        return (self.option.typed or f"--{no}{self.name.replace('_', '-')}").split()[0]

    @property
    def line(self) -> str:
        """Its line in a docstring."""
        option = self.option or Option("")
        turned = "False: " if self.default is True else ""
        value = "|".join(option.choices) or option.metavar
        words = f"{turned}{self.typed} {value}".strip()
        return f"    {self.name}{f' ({words})' if words else ''}: {option.help}"

    @property
    def parameter(self) -> Parameter:
        """The parameter of a signature."""
        return Parameter(
            self.name, Parameter.KEYWORD_ONLY, default=self.default, annotation=self.type
        )


@dataclass(eq=False)
class Command(Generic[A]):
    """A function of reports, its own parameters and the shared ones; called, it answers.

    The function makes a Question of its own parameters, or takes the reports and answers itself.

    `layouts`: the columns that a row always has, one of several sets; `more`: those that it may
    have beside; `keys`: what its rows are about; `members`: what the document holds beside rows, as
    JSON Schemas; `sections`: what it holds instead of them; `view`: how a terminal shows them.

    How an answer leaves where it is no plain table: `people` makes the table for people of it,
    `for_people` are arguments that hold for them unless others are given. The rest are
    "module:name", loaded when used. `text`: prints it (answer, console, rows); `picture`: draws it
    (answer, and those `beside` it, of other commands); `formats`: makes bytes of it, by format;
    `files`: writes it, by suffix (answer, file).
    """

    function: Callable[..., Any]
    _: KW_ONLY
    layouts: tuple[tuple[Field, ...], ...] = ()
    more: tuple[Field, ...] = ()
    keys: tuple[RowKey, ...] = ()
    members: Mapping[str, Any] | None = None
    sections: Mapping[str, tuple[Field, ...]] = field(default_factory=dict)
    view: View = field(default_factory=View)
    people: Callable[[Any], Any] | None = None
    for_people: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    picture: str = ""
    beside: tuple[str, ...] = ()
    formats: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.__wrapped__ = self.function
        self.__name__ = self.__qualname__ = self.function.__name__
        self.__module__ = self.function.__module__
        self.name = self.__name__.replace("_", "-")

    @cached_property
    def _parameters(self) -> dict[str, Parameter]:
        return dict(inspect.signature(self.function).parameters)

    def _declared(self, kind: Any) -> dict[str, Argument]:
        hints = get_type_hints(self.function, include_extras=True)
        return {
            name: Argument.of(name, hints[name], each.default)
            for name, each in self._parameters.items()
            if each.kind is kind
        }

    @cached_property
    def asks(self) -> bool:
        """Whether its function makes a question; others answer themselves."""
        return get_origin(get_type_hints(self.function).get("return")) is Question

    @cached_property
    def positional(self) -> dict[str, Argument]:
        """Its arguments that are no options: reports."""
        if self.asks:
            return {"reports": Argument("reports", Paths, Parameter.empty)}
        return self._declared(Parameter.POSITIONAL_OR_KEYWORD)

    @cached_property
    def own(self) -> dict[str, Argument]:
        """Its arguments but for the shared ones."""
        named = self._declared(Parameter.KEYWORD_ONLY)
        if self.asks and self.layouts and "top" not in named:
            named["top"] = Argument.of("top", Top)
        return named

    @cached_property
    def shared(self) -> dict[str, Argument]:
        """The arguments that commands share, as far as this one takes them."""
        open_ended = next(
            (p for p in self._parameters.values() if p.kind is Parameter.VAR_KEYWORD), None
        )
        if not self.asks and open_ended is None:
            return {}
        names = Reading if open_ended is not None and open_ended.name == "reading" else Common
        hints = get_type_hints(names, include_extras=True)
        return {
            name: Argument.of(name, annotation, DEFAULTS.get(name))
            for name, annotation in hints.items()
            if name not in self.own
        }

    @cached_property
    def __signature__(self) -> Signature:
        reports = Parameter("reports", Parameter.POSITIONAL_OR_KEYWORD, annotation="Paths")
        first = [reports] if self.asks else [self._parameters[name] for name in self.positional]
        named = (*self.own.values(), *self.shared.values())
        return Signature([*first, *(argument.parameter for argument in named)])

    @cached_property
    def __doc__(self) -> str:  # type: ignore[override]
        lines = [each.line for each in (*self.own.values(), *self.shared.values())]
        words = self.words.replace(UNWRAPPED, "")
        return "\n".join([self.help, "", words, "", "Parameters:", *lines])

    @property
    def help(self) -> str:
        """Its line in `nsightpy --help`."""
        return COMMANDS[self.name].help

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of the files that it writes or draws, beside tables."""
        return (*((".png", ".svg", ".pdf") if self.picture else ()), *self.files)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its answer in json."""
        from nsightpy.output.json_schema import document_schema

        described = (self.layouts, self.more, self.keys, self.members, self.sections)
        return document_schema(self.name, *described)

    @property
    def words(self) -> str:
        """What its function says of it."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def question(self, **own: Any) -> Question[A]:
        """What it asks with these of its own arguments."""
        own = self._checked(own)
        cut = own.pop("top", None) if "top" not in self._parameters else None
        result: Question[A] = self.function(**own)
        return replace(result, presented=self.presented, top=cut)

    def __call__(self, *reports: Any, **given: Any) -> A:
        given = self._checked(given)
        if not self.asks:
            result: A = self.presented(self.function(*reports, **given))
            return result
        if len(reports) > 1 or (not reports and "reports" not in given):
            raise TypeError(f"{self.__name__}() takes reports, several as a list")
        answer: A = self.asked(reports[0] if reports else given.pop("reports"), given)[0]
        return answer

    def asked(
        self, reports: Paths, given: Mapping[str, Any], beside: Sequence[str] = ()
    ) -> list[Any]:
        """What it and other commands say of some reports, which are read once for all of them.

        The others are asked with those of its own arguments that they share. Raises what one says.
        """
        own = {name: given[name] for name in given if name in self.own}
        common: Any = {name: given[name] for name in given if name not in self.own}
        request = Request.of(reports, **common)
        commands: list[Command[Any]] = [self, *(COMMANDS[name].load() for name in beside)]
        questions = [
            each.question(**{name: own[name] for name in each.own if name in own})
            for each in commands
        ]
        found = answers(request, questions)
        for failure in (one for one in found if isinstance(one, NsightpyError)):
            raise failure
        return found

    def figure(self, *reports: Any, **given: Any) -> Any:
        """Its answer as a matplotlib Figure."""
        draw = resolve_name(self.picture)
        if not self.asks:
            return draw(self(*reports, **given))
        asked = reports[0] if reports else given.pop("reports")
        return draw(*self.asked(asked, given, self.beside))

    def presented(self, result: Any) -> Any:
        """A table with what is known of its rows: what they are about, how they are shown."""
        if not isinstance(result, Table):
            return result
        identity = self.keys if result.identity is None else result.identity
        view = self.view if result.view is None else result.view
        return replace(result, identity=identity, view=view)

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, with a number of rows that is larger than any for a top of 0.

        Raises TypeError for an unknown keyword, UsageError for a value that none can have.
        """
        known = self.__signature__.parameters
        for name in sorted(given.keys() - known.keys()):
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument {name!r}")
        for name, value in given.items():
            argument = self.own.get(name) or self.shared.get(name)
            if argument is not None and argument.option is not None and value is not None:
                argument.option.check(name, value)
        return {**given, "top": sys.maxsize} if given.get("top") == 0 else dict(given)


def command(
    *fields: Field, layouts: tuple[tuple[Field, ...], ...] = (), **declared: Any
) -> Callable[[Callable[..., Any]], Command[Any]]:
    """Declare a function as a command: its columns, and how its answer leaves (see Command).

    The function makes a question, or answers itself.
    """

    def decorate(function: Callable[..., Any]) -> Command[Any]:
        return Command(function, layouts=layouts or ((fields,) if fields else ()), **declared)

    return decorate
