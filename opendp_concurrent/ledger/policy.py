"""A policy as data: who may spend how much of the budget of a dataset, in one TOML or JSON file.

The file says what is promised; the ledger keeps it. A policy that is applied again changes nothing
that a charge was made under: neither the cap, nor a limit. Whatever does not fit is refused with
its line, before anything is made.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, NoReturn

from opendp.mod import Measure, Measurement

from ..arguments.abilities import instance
from ..arguments.checked import Text, checked
from ..arguments.checks import function, optional, shown
from ..combinators.loss_of import loss_of
from ..errors import ConcurrentError, InvalidTypeError, InvalidValueError
from ..errors.ledger import LedgerMismatchError
from ..exact.decimals import down
from ..shown import rounded
from ..types import Answer, Argument, Json, Loss
from .audit import Summary
from .ledger import SqlLedger
from .opening import create_ledger, datasets, open_ledger
from .paths import path_or_url

if sys.version_info >= (3, 11):
    import tomllib

_KEYS = {"dataset": str, "d_in": int, "cap": dict, "teams": dict, "people": list, "limits": dict}
_NEEDED = "dataset", "d_in", "cap"
_EVERY = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
_ANYBODY = "*"


def _day(**argument: Argument) -> date:
    ((name, day),) = argument.items()
    if type(day) is not date:  # a datetime is none: its day depends on the time zone
        raise InvalidTypeError(f"{name} must be a datetime.date, found {type(day).__name__}")
    return day


class _File(NamedTuple):
    """The name and the text of a policy's file."""

    name: str
    text: str

    def fail(self, what: str, at: str, which: int = 0) -> NoReturn:
        """Raise, with a line that begins with a key, or has it in quotes.

        :param which: 0 for the first of these, -1 for the last
        """
        pattern = rf'^\s*(\[[\w."]*)?{re.escape(at)}\b|"{re.escape(at)}"'
        lines = [n for n, line in enumerate(self.text.split("\n"), 1) if re.search(pattern, line)]
        where = f", line {lines[which]}" if lines else ""
        raise InvalidValueError(f"{self.name}{where}: {what}")


class PolicyLimit(NamedTuple):
    """A limit of a policy.

    :ivar d_out: bound on the privacy loss, in each period
    :ivar every: ``"day"``, ``"week"``, ``"month"`` or ``"year"`` (UTC): each begins with a full
        limit, and what was not spent before is gone; None for one limit for good
    :ivar until: the last day on which it is opened; None if it does not end
    """

    d_out: Loss
    every: str | None
    until: date | None

    def label(self, name: str, day: date) -> str:
        """Return its label in the ledger on a day."""
        return name if self.every is None else f"{name}, {day.strftime(_EVERY[self.every])}"


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may spend how much of the budget of a dataset, from :func:`read_policy`.

    :ivar dataset: name of the dataset
    :ivar measure: OpenDP's measure, which the keywords of the cap say
    :ivar d_in: distance between neighbouring inputs
    :ivar d_out: the cap, of all together; of a block filter, of each block
    :ivar above: by person, the team; None for a person without one, and for a team
    :ivar limits: by the name of a team or a person; that of ``"*"`` is for each other person
    :ivar file: name and text of the file
    """

    dataset: str
    measure: Measure
    d_in: int
    d_out: Loss
    above: Mapping[str, str | None]
    limits: Mapping[str, PolicyLimit]
    file: _File

    @checked(day=optional(_day))
    def path(self, name: Text, day: date | None = None) -> list[tuple[str, Loss]]:
        """Return the labels and bounds of a person's or a team's limits, the outermost one first.

        :param name: of a person or a team
        :param day: the day, in UTC; None for today
        :raises InvalidValueError: if the policy has nobody of this name, or a limit has ended
        """
        if name not in self.above and _ANYBODY not in self.above:
            raise InvalidValueError(f"name ({shown(name)}) must be in teams or in people")
        found = []
        for one, limit in self._limits(name):
            if limit.until is not None and (day or today()) > limit.until:
                raise InvalidValueError(f"the limit of {shown(one)} ended on {limit.until}")
            found.append((limit.label(one, day or today()), limit.d_out))
        return found

    def _limits(self, name: str) -> list[tuple[str, PolicyLimit]]:
        """The limits that a name is below, and its own."""
        team = self.above.get(name, self.above.get(_ANYBODY))
        other = self.limits.get(_ANYBODY)
        names = (name,) if team is None else (team, name)
        is_team = name in self.above.values()
        own = {name: other} if other is not None and not is_team else {}
        own |= {one: self.limits[one] for one in names if one in self.limits}
        return [(one, own[one]) for one in names if one in own]

    def handle(
        self, root: Answer, name: str, make: Callable[..., Any], day: date | None = None
    ) -> Any:
        """Open a person's or a team's limits, and return the handle to launch on.

        :param root: the queryable of the filter that :func:`apply_policy` returned
        :param name: of a person or a team
        :param make: ``partial(oc.c.make_limited, odometer)``
        :param day: the day, in UTC; None for today. Open the handle again in each period
        :raises InvalidValueError: if the policy has nobody of this name, or a limit has ended
        :raises LimitMismatchError: if the limit was charged under another bound
        """
        handle: Any = root
        for label, d_out in self.path(name, day):
            handle = handle(make(d_in=self.d_in, d_out=d_out, label=label))
        return handle

    def check(self, summary: Summary) -> None:
        """Check that a ledger keeps the policy.

        :raises InvalidValueError: naming the line of the file
        """
        terms = summary.terms
        if terms is not None and not hasattr(type(summary.spent), "of"):  # else the filter checks
            self._same("cap", self.d_out, terms.d_out, summary.spent)
        for one in summary.limits:
            label = one.path[-1]
            names = label, label.rpartition(", ")[0]  # the other one is without its period
            for name in [n for n in names if n in self.limits] or names[::-1]:
                limits = self._limits(name)
                labels = [limit.label(of, today()) for of, limit in limits]
                if labels and list(map(_shape, labels)) == list(map(_shape, one.path)):
                    break
            else:
                what = " > ".join(one.path)
                self.file.fail(f"the ledger has a limit {what!r}, which this file lacks", "limits")
            if labels[-1] == label and one.terms.d_in == self.d_in:
                self._same(name, limits[-1][1].d_out, one.terms.d_out, one.spent)

    def _same(self, name: str, given: Loss, recorded: Loss, spent: Loss) -> None:
        if given != recorded:
            self.file.fail(
                f"{name} ({rounded(given)}) is not what was promised: the ledger has "
                f"{rounded(recorded)}, with {rounded(spent)} spent; a bound is never changed",
                name if name in (*self.limits, "cap") else _ANYBODY,
                -1,
            )


def _shape(label: str) -> str:
    """A label with each digit as 0: those of one limit in all periods are equal."""
    return re.sub(r"\d", "0", label)


def today() -> date:
    """Return the day in UTC."""
    return datetime.now(timezone.utc).date()


# --- reading -------------------------------------------------------------------------------------


@checked(path=path_or_url)
def read_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy.

    :param path: of a TOML file (Python 3.11 or newer), or of a JSON file
    :raises InvalidValueError: if something is missing, unknown or contradictory, with its line
    :raises OSError: if the file cannot be read

    :example:

    >>> import tempfile
    >>> from datetime import date
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import read_policy
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "policy.json"
    >>> _ = file.write_text('''{
    ...     "dataset": "visits", "d_in": 1, "cap": {"epsilon": 2.0}, "people": ["ann"],
    ...     "limits": {"ann": {"epsilon": 0.5, "every": "week"}}
    ... }''')
    >>> read_policy(file).path("ann", date(2026, 11, 24))
    [('ann, 2026-W48', 0.5)]
    >>> folder.cleanup()
    """
    source = Path(path)
    try:
        file = _File(source.name, source.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{source.name}: {error}") from None
    given = _parsed(file)
    for key in given:
        if key not in _KEYS:
            file.fail(f"{key} is unknown; known are {', '.join(_KEYS)}", key)
    for key, kind in _KEYS.items():
        value = given.setdefault(key, None if key in _NEEDED else kind())
        if type(value) is not kind:
            file.fail(f"{key} must be given, as {kind.__name__}", key)
    if given["d_in"] < 1:
        file.fail(f"d_in ({given['d_in']}) must be at least 1, the change of one unit", "d_in")
    measure, d_out = _loss(file, "cap", given["cap"])
    above: dict[str, str | None] = {}
    members = [(None, given["people"]), (None, list(given["teams"])), *given["teams"].items()]
    for team, names in members:
        if type(names) is not list:
            file.fail(f"{team} must be a list of names", str(team))
        for name in names:
            if type(name) is not str or not name or name in above:
                file.fail(f"{shown(name)} must be a name that is there once", str(team or "people"))
            above[name] = team
    limits = {}
    for name, limit in given["limits"].items():
        if name not in above:
            file.fail(f"limit of {name!r}, who is neither in teams nor in people", name, -1)
        if type(limit) is not dict:
            file.fail(f"limit of {name!r} must be a table, such as {{epsilon = 0.5}}", name, -1)
        every, until = limit.pop("every", None), limit.pop("until", None)
        known = every is None or (type(every) is str and every in _EVERY)
        try:
            until = date.fromisoformat(until) if type(until) is str else until
        except ValueError:
            until = 0
        if not known or not (until is None or type(until) is date):
            file.fail(f"every must be one of {', '.join(_EVERY)}, and until a day", name, -1)
        found, loss = _loss(file, name, limit)
        if found != measure:
            file.fail("a limit must have the keywords of the cap", name, -1)
        limits[name] = PolicyLimit(loss, every, until)
    return Policy(given["dataset"], measure, given["d_in"], d_out, above, limits, file)


def _parsed(file: _File) -> dict[str, Any]:
    try:
        if not file.name.endswith(".toml"):
            found = json.loads(  # no loss is infinite: loss_of refuses such decimals
                file.text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_once
            )
        elif sys.version_info >= (3, 11):
            found = tomllib.loads(file.text, parse_float=Decimal)
        else:
            raise InvalidValueError("a TOML file needs Python 3.11; write the policy as JSON")
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"{file.name}: {error}") from None
    if type(found) is not dict:
        file.fail("a policy must be a table", "dataset")
    return found


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidValueError(f"a key is there twice, among {', '.join(found)}")
    return found


def _loss(file: _File, name: str, given: dict[str, Any]) -> tuple[Measure, Loss]:
    try:
        measure, loss = loss_of(**given)
        return measure, down(loss)  # as ledgers keep it
    except (ConcurrentError, TypeError, ValueError) as error:
        file.fail(str(error), name, -1)


# --- applying ------------------------------------------------------------------------------------


@checked(policy=instance(Policy), path=path_or_url, make=function)
def apply_policy(
    policy: Policy,
    path: str | os.PathLike[str],
    make: Callable[..., Measurement],
    *,
    create: bool = False,
) -> tuple[SqlLedger, Measurement]:
    """Open the ledger of a policy and make its filter, after checks that the ledger keeps it.

    :param policy: from :func:`read_policy`
    :param path: path of an SQLite file, or the URL of a database
    :param make: ``partial(oc.make_concurrent_filter, odometer)``, or ``partial(
        oc.c.make_block_filter, odometer, blocks=...)``; called with ``d_in``, ``d_out`` and
        ``ledger``
    :param create: whether to make the ledger if the dataset has none there
    :return: the ledger, and the filter
    :raises InvalidValueError: if the ledger promised something else, with the line of the policy
    :raises LedgerError: if there is no ledger, or it cannot be opened

    :example:

    >>> import tempfile
    >>> from functools import partial
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import apply_policy, read_policy
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "policy.json"
    >>> _ = file.write_text('{"dataset": "visits", "d_in": 1, "cap": {"epsilon": 2.0}}')
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> make = partial(oc.make_concurrent_filter, odometer)
    >>> ledger, cap = apply_policy(
    ...     read_policy(file), Path(folder.name) / "budget.db", make, create=True
    ... )
    >>> cap([1, 2, 3]).remaining()
    2.0
    >>> ledger.close()
    >>> folder.cleanup()
    """
    terms = {"d_in": policy.d_in, "d_out": policy.d_out}
    with TemporaryDirectory() as folder, create_ledger(Path(folder, "trial"), "trial") as trial:
        made = make(**terms, ledger=trial)  # if this raises, nothing was created
        if made.output_measure != policy.measure:
            policy.file.fail(f"cap is under {policy.measure}, the filter is not", "cap")
    with ExitStack() as stack:
        there = "://" in str(path) or os.path.exists(path)
        is_new = create and not (there and policy.dataset in datasets(path))
        get = create_ledger if is_new else open_ledger
        ledger = stack.enter_context(get(path, policy.dataset))
        policy.check(ledger.summary())
        try:
            made = make(**terms, ledger=ledger)
        except LedgerMismatchError as error:
            policy.file.fail(str(error), "d_in" if error.name == "d_in" else "cap")
        stack.pop_all()
    return ledger, made
