"""The function of a command as help() shows it: every parameter, its default and its meaning."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, ParamSpec, TypeVar, cast

from nsightpy.errors import UsageError
from nsightpy.query.parameters import COMMON, SHARED
from nsightpy.query.request import Common

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")


def command_function(function: F) -> F:
    """A function that takes **common, with the common parameters in its signature and docstring.

    A keyword that it does not know is a TypeError that names the nearest one.
    """
    types = Common.__annotations__
    common = {
        shared.name: Parameter(
            shared.name,
            Parameter.KEYWORD_ONLY,
            default=shared.default,
            annotation=getattr(types[shared.name], "__forward_arg__", types[shared.name]),
        )
        for shared in COMMON
    }
    return cast(F, described(function, _with_keywords(inspect.signature(function), common)))


def described_by(command: Callable[..., Any]) -> Callable[[F], F]:
    """The same for a function whose **options are the keywords of a command."""
    keywords = _keywords_of(inspect.signature(command))

    def decorate(function: F) -> F:
        return cast(F, described(function, _with_keywords(inspect.signature(function), keywords)))

    return decorate


def explained(function: F) -> F:
    """The same for a function that names the shared parameters itself."""
    return cast(F, described(function, inspect.signature(function)))


def described(function: Callable[P, T], signature: Signature) -> Callable[P, T]:
    """The function under a signature, with the shared parameters of it in the docstring."""

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for given in sorted(kwargs.keys() - signature.parameters.keys()):
            close = difflib.get_close_matches(given, signature.parameters, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            name = function.__name__
            raise TypeError(f"{name}() got an unexpected keyword argument {given!r}{hint}")
        top = kwargs.get("top")
        if top is not None:
            if not isinstance(top, int) or top < 0:
                raise UsageError(f"top must be a number of rows, 0 for all, not {top!r}")
            kwargs["top"] = top or sys.maxsize
        return function(*args, **kwargs)

    keywords = _keywords_of(signature)
    shared = [SHARED[name] for name in keywords if name in SHARED]
    lines = (f"    {each.name}{each.typed}: {each.meaning}" for each in shared)
    text = inspect.cleandoc(function.__doc__ or "")
    checked.__doc__ = "\n".join([text, "", "Parameters that commands share:", *lines])
    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked


def _keywords_of(signature: Signature) -> dict[str, Parameter]:
    """The parameters that are given by name only."""
    parameters = signature.parameters.items()
    return {name: each for name, each in parameters if each.kind is Parameter.KEYWORD_ONLY}


def _with_keywords(signature: Signature, keywords: Mapping[str, Parameter]) -> Signature:
    """The signature with these keywords in place of its **options."""
    parameters = [p for p in signature.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    more = (keyword for name, keyword in keywords.items() if name not in signature.parameters)
    return signature.replace(parameters=[*parameters, *more])
