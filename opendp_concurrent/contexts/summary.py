"""What a query would release: its noise, and the accuracy of its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from opendp.accuracy import (
    discrete_laplacian_scale_to_accuracy,
    gaussian_scale_to_accuracy,
    laplacian_scale_to_accuracy,
)
from opendp.mod import Domain, Measurement, Transformation

from ..errors import InvalidTypeError
from ..queryables.accuracy import Accuracy, of_one
from ..queryables.mechanism import known_accuracy
from .answers import discrete_gaussian_accuracy

Quantile = Callable[[float, float], float]
LAPLACE = "Laplace", laplacian_scale_to_accuracy, discrete_laplacian_scale_to_accuracy
NATIVE: dict[str, tuple[str, Quantile, Quantile]] = {
    "make_laplace": LAPLACE,
    "make_geometric": LAPLACE,
    "make_gaussian": ("Gaussian", gaussian_scale_to_accuracy, discrete_gaussian_accuracy),
}
CASTS = (
    "make_pureDP_to_zCDP",
    "make_zCDP_to_approxDP",
    "make_fix_delta",
    "make_approximate",
)


@dataclass(frozen=True)
class Summary:
    """Noise and accuracy of a query, as OpenDP's queries on frames have them.

    :ivar distribution: of the noise
    :ivar scale: of the noise, in units of the answers; None if there are several
    :ivar accuracy: with probability at least 1 - ``alpha``, all answers are within it; None if no
        ``alpha`` was given
    :ivar alpha: probability of a larger error
    :ivar shares: of a mean, a variance or a deviation: the parts of the answer, and the share of
        the loss that each takes; they are chosen for the least error of a mean
    """

    distribution: str
    scale: float | None
    accuracy: float | None = None
    alpha: float | None = None
    shares: tuple[tuple[str, float], ...] = ()

    def __repr__(self) -> str:
        scale = "-" if self.scale is None else f"{self.scale:.6g}"
        rows = [("distribution", self.distribution), ("scale", scale)]
        if self.accuracy is not None:
            rows.append(("accuracy", f"{self.accuracy:.6g}"))
            rows.append(("alpha", f"{self.alpha:g}"))
        rows += [(f"share of {name}", f"{share:.2f}") for name, share in self.shares]
        wide = [max(len(one), len(other)) for one, other in rows]
        lines = zip(*rows, strict=True)
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip()
            for line in lines
        )


def summarize(measurement: Measurement, alpha: float | None, answers: int | None) -> Summary:
    """Return the summary of a measurement, or raise if its noise is not known."""
    found = known_accuracy(measurement) or _native(measurement)
    if found is None:
        raise InvalidTypeError(
            f"the accuracy of {measurement} is not known; summarize queries that end in noise, or "
            "in a mechanism of oc.m"
        )
    error = None if alpha is None else found.at(alpha, answers)
    return Summary(found.noise, found.scale, error, alpha)


def _native(measurement: Measurement) -> Accuracy | None:
    """Return the accuracy of OpenDP's noise, at the end of a chain of transformations."""
    while isinstance(measurement, Measurement):
        made = getattr(measurement, "__opendp_dict__", None) or {}
        name, given = made.get("__function__"), made.get("__kwargs__", {})
        if name == "make_chain_mt" and isinstance(given.get("transformation0"), Transformation):
            measurement = given["measurement1"]
            known = known_accuracy(measurement)
            if known is not None:
                return known
            continue
        if name in CASTS:  # the same function
            measurement = given["measurement"]
            continue
        if name not in NATIVE:
            return None
        if given.get("k") is not None:  # a coarse grid
            return None
        return _of_noise(*NATIVE[name], measurement.input_domain, float(given["scale"]))
    return None


def _of_noise(
    noise: str, real: Quantile, whole: Quantile, domain: Domain, scale: float
) -> Accuracy:
    carrier = str(domain.carrier_type)
    many = carrier.startswith("Vec<")
    on_reals = carrier.removeprefix("Vec<").removesuffix(">") in ("f32", "f64")

    def one(failing: float) -> float:
        if scale == 0.0:
            return 0.0
        if on_reals:
            return real(scale, failing)
        return float(ceil(whole(scale, failing)) - 1)  # noise of this size has at most failing

    size: int | None = getattr(domain, "size", None)
    return Accuracy(noise, scale, of_one(one), size if many else 1)
