"""What can stand for a transformation where one is asked: a query of a context."""

from __future__ import annotations

from abc import abstractmethod

from opendp.mod import Transformation


class AsTransformation:
    """A query that is a transformation so far."""

    @abstractmethod
    def as_transformation(self) -> Transformation:
        """Return the transformation, or raise if it is a measurement already."""
