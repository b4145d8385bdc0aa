"""Guards that the constructors share."""

from __future__ import annotations

from typing import Any

from opendp.mod import Domain, Metric

from ..errors import InvalidTypeError, InvalidValueError
from ..queryables.session import validate_d_in


def check_space(input_domain: Any, input_metric: Any) -> None:
    """Raise unless both are OpenDP's."""
    if not isinstance(input_domain, Domain):
        raise InvalidTypeError(
            f"input_domain must be a domain, found {type(input_domain).__name__}; "
            "pass for example dp.vector_domain(dp.atom_domain(T=int))"
        )
    if not isinstance(input_metric, Metric):
        raise InvalidTypeError(
            f"input_metric must be a metric, found {type(input_metric).__name__}; "
            "pass for example dp.symmetric_distance()"
        )


def constant_map(input_metric: Metric, bound_d_in: Any, d_out: Any) -> Any:
    """Return the privacy map of an interaction that is bounded at one d_in: d_out up to there."""

    def privacy_map(d_in: Any) -> Any:
        validate_d_in(input_metric, d_in)
        numbers = isinstance(d_in, (int, float)) and isinstance(bound_d_in, (int, float))
        if (d_in <= bound_d_in) if numbers else (d_in == bound_d_in):
            return d_out
        raise InvalidValueError(
            f"d_in ({d_in}) must be at most {bound_d_in}, the d_in that this was built for; "
            "build it for a larger one"
        )

    return privacy_map
