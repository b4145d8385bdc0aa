"""Certificates of geometric noise."""

import opendp.prelude as dp

import opendp_concurrent as oc

WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
T = oc.TradeoffFunction


def test_bounds_of_a_geometric_mechanism_go_through_pure_dp():
    measurement = oc.m.make_certified_geometric(*WHOLE, 2.0, oc.tradeoff(), bounds=(0, 10))
    assert measurement.map(3) == T.pure(1.5)
