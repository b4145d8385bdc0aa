"""Trade-off functions: exact families, certified composition, and the order between them.

Numbers and arrays in, numbers and arrays out: no data, no OpenDP. With a pair of distributions
(P, Q) and the loss L = ln P/Q, the profile is δ(ε) = E_P[(1 - e^(ε-L))₊], for every real ε.

* ``factor.py``: what a product needs to know of a factor; ``gaussian.py``, ``laplace.py`` and
  ``finite.py`` are the factors that there are; ``discrete_gaussian.py``, ``vertices.py`` and
  ``densities.py`` make finite ones.
* ``contour.py`` and ``inversion.py``: the profile of a product, by Fourier inversion, between two
  bounds; ``atoms.py``: the same exactly, where the losses are few; ``binomial.py``.
* ``product.py`` puts them together; ``order.py`` compares; ``residue.py`` is the residual of a
  Gaussian budget; ``function.py`` is the class that users see.
"""
