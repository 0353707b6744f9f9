"""What the integrations share when they declare their effects."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from typing import Any

from interlock_tools import BadArguments, DefinitionError, Gate


def gate_from_environment() -> Gate:
    """Return a gate on the journal that ``INTERLOCK_JOURNAL`` names (a path or a URL).

    ``INTERLOCK_SIGNING`` names a directory of keys, to sign what is recorded, and
    ``INTERLOCK_WITNESSES`` a policy with witnesses.

    Raises:
        DefinitionError: it is not set.
        JournalUnusable: it cannot be opened.
    """
    journal = os.environ.get("INTERLOCK_JOURNAL")
    if not journal:
        raise DefinitionError(
            "set INTERLOCK_JOURNAL to a file that outlives the process, or a postgresql:// URL, or pass gate=Gate(...)"
        )
    signing, witnesses = os.environ.get("INTERLOCK_SIGNING"), os.environ.get("INTERLOCK_WITNESSES")
    return Gate(journal, signing=signing or None, witnesses=witnesses or None)


def check_text(name: str, value: Any, pattern: str, longest: int = 300) -> None:
    """Check an argument of an effect that is called without its tool, whose schema says the same.

    Args:
        name: the argument's.
        value: what was given for it.
        pattern: a regular expression for the whole of it.
        longest: most characters that it may have.

    Raises:
        BadArguments: it is of another form.
    """
    if not isinstance(value, str) or len(value) > longest or re.fullmatch(pattern.removesuffix("$"), value) is None:
        raise BadArguments(f"{name} is not of the form that is taken ({pattern}, at most {longest:,} characters)")


def with_more(facts: Callable[..., dict[str, Any]], more: Callable[..., Any] | None) -> Callable[..., dict[str, Any]]:
    """Return premises that add the application's facts to a tool's own.

    ``more`` is called with those of the arguments that it names, and its facts win.

    Raises:
        DefinitionError: ``more`` is not a plain function, or names what is not there.
    """
    if more is None:
        return facts
    if not callable(more) or inspect.iscoroutinefunction(more):
        raise DefinitionError("premises= takes a plain function that returns a dict of facts")
    known = list(inspect.signature(facts).parameters.values())
    names = {parameter.name for parameter in known}
    wanted = inspect.signature(more).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in wanted)
    chosen = names if takes_all else {parameter.name for parameter in wanted}
    if not chosen <= names:
        raise DefinitionError(
            f"premises= names {', '.join(sorted(chosen - names))}; there are {', '.join(sorted(names))}"
        )

    def both(**arguments: Any) -> dict[str, Any]:
        return {**facts(**arguments), **more(**{name: arguments[name] for name in chosen})}

    both.__signature__ = inspect.Signature(known)  # type: ignore[attr-defined]
    return both
