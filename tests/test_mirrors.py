"""Each module of the package has a test file of its own, or stands in a table with another."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "opendp_concurrent", ROOT / "tests"

# A test file, and the modules that have no file of their own because it tests them.
ELSEWHERE = {
    "accounts/test_account.py": [
        "accounts/charge.py",
        "accounts/on_ledger.py",
        "accounts/rule.py",
        "ledger/decide.py",
    ],
    "ledger/test_queue.py": ["accounts/history.py"],
    "accumulators/test_rule_formulas.py": [
        "accumulators/advanced.py",
        "accumulators/epsilon_delta_sum.py",
        "accumulators/renyi.py",
        "accumulators/zcdp.py",
    ],
    "accumulators/test_rules.py": ["accumulators/basic.py", "accumulators/either.py"],
    "accumulators/test_values.py": [
        "sums/pair_sum.py",
        "sums/scalar_sum.py",
        "sums/square_sum.py",
    ],
    "combinators/test_cast.py": ["combinators/loss_of.py"],
    "combinators/test_guards.py": [
        "combinators/chain.py",
        "combinators/concurrent_composition.py",
        "combinators/concurrent_filter.py",
        "combinators/inside.py",
        "combinators/pairs.py",
    ],
    "combinators/test_interactive_measurement.py": ["queryables/mechanism.py"],
    "combinators/test_wrap.py": ["combinators/named_casts.py"],
    "contexts/test_context.py": ["contexts/accountant.py"],
    "contexts/test_frame_query.py": ["contexts/native_loss.py"],
    "contexts/test_query.py": ["contexts/by_opendp.py", "errors/contexts.py"],
    "continual/test_records.py": ["queryables/saved.py"],
    "continual/test_transformations.py": ["continual/stream.py"],
    "counters/test_digits.py": ["counters/window_digits.py"],
    "counters/factors/test_factor_prefix.py": ["counters/methods.py", "counters/prefix.py"],
    "fdp/test_fuzz.py": ["fdp/factor.py"],
    "fdp/test_reading.py": ["fdp/concentrated.py"],
    "fdp/test_inversion.py": ["fdp/contour.py"],
    "fdp/test_vertices.py": ["fdp/coarse.py", "fdp/group.py", "fdp/shapes.py"],
    "individual/test_noise_loss.py": ["measures/noise.py"],
    "ledger/records/test_limits.py": ["ledger/records/limited.py"],
    "ledger/test_kept.py": ["ledger/records/kept.py"],
    "ledger/records/test_replay.py": ["ledger/records/entries.py"],
    "ledger/test_spending.py": ["ledger/words.py"],
    "ledger/storage/test_faults.py": [
        "ledger/opening.py",
        "ledger/storage/backends.py",
        "ledger/storage/store.py",
        "ledger/storage/tables.py",
    ],
    "measurements/linear/test_projection.py": ["measurements/linear/linear_answers.py"],
    "measurements/linear/test_marginals.py": ["measurements/linear/noise_of.py"],
    "measures/conversions/test_formulas.py": [
        "exact/normal.py",
        "exact/zcdp.py",
        "fdp/optimal_composition.py",
        "measures/conversions/approximate_to_approximate.py",
        "tradeoffs/gaussian_to_approximate.py",
        "measures/conversions/laplace.py",
        "tradeoffs/laplace.py",
        "measures/conversions/products.py",
        "tradeoffs/pure_to_gaussian.py",
        "measures/conversions/pure_to_renyi.py",
        "measures/conversions/pure_to_zcdp.py",
        "measures/conversions/randomized_response.py",
        "measures/conversions/renyi_to_approximate.py",
        "tradeoffs/conversions.py",
    ],
    "selection/test_events.py": ["fdp/registered.py"],
    "truncated/test_truncated_tools.py": ["truncated/distances.py"],
    "measures/test_measures.py": [
        "measures/approximate_max_divergence.py",
        "measures/approximate_zero_concentrated_divergence.py",
        "truncated/fixed_renyi_divergence.py",
        "tradeoffs/gaussian_tradeoff.py",
        "measures/kinds.py",
        "measures/max_divergence.py",
        "measures/measure.py",
        "measures/opendp.py",
        "measures/renyi_divergence.py",
        "measures/shapes.py",
        "measures/smoothed_max_divergence.py",
        "truncated/truncated_concentrated_divergence.py",
        "measures/zero_concentrated_divergence.py",
    ],
    "measures/test_toy_measure.py": ["measures/conversion.py"],
    "data/test_toy_kind.py": ["data/kind.py", "data/known.py"],
    "individual/test_rows.py": ["data/own.py", "data/vectors.py"],
    "parallel/test_partition.py": ["parallel/by.py"],
    "parallel/test_parallel_loss.py": ["measures/joins.py", "tradeoffs/joins.py"],
    "queryables/test_spawn.py": ["queryables/root.py"],
    "queryables/test_stream.py": ["queryables/stream_handles.py", "queryables/updates.py"],
    "tables/engines/test_postgres.py": ["tables/engines/connections.py"],
    "tables/test_aggregates.py": ["tables/numbers.py"],
    "tables/test_bins.py": ["tables/rendering/bins.py"],
    "tables/test_engine.py": ["tables/engines/engine.py"],
    "tables/test_keys.py": ["measurements/table_keys.py"],
    "tables/test_launches.py": ["tables/kind.py"],
    "tables/test_scan.py": ["tables/table.py"],
    "tables/test_steps.py": ["tables/domain.py", "tables/schema.py"],
    "tables/test_traps.py": [
        "tables/rendering/dialects.py",
        "tables/rendering/expressions.py",
        "tables/plan.py",
        "tables/rendering/render.py",
        "tables/rendering/syntax.py",
    ],
    "tables/test_typed.py": ["tables/expression.py", "tables/rendering/values.py"],
    "test_entry.py": ["__main__.py"],
    "test_errors.py": [
        "errors/blocks.py",
        "errors/data.py",
        "errors/events.py",
        "errors/every.py",
        "errors/ledger.py",
        "errors/mechanisms.py",
        "errors/streams.py",
    ],
    "test_hooks.py": ["native/hook.py"],
    "test_reach.py": ["types.py"],
    "test_public_names.py": ["c.py", "m.py", "public.py", "t.py"],
    "messages/test_serialization.py": [
        "messages/calls.py",
        "messages/kinds.py",
        "messages/values.py",
        "arguments/provenance.py",
    ],
    "verify/filters/test_adversary.py": ["verify/filters/menu.py"],
}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "__init__.py":
            yield path.relative_to(PACKAGE)


def mirror(module):
    return module.parent / f"test_{module.stem.strip('_')}.py"


def without_mirror(found):
    return {module.as_posix() for module in found if not (TESTS / mirror(module)).exists()}


@cache
def words(path):
    """Return what a file imports, each name in its code, and each word in its strings."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(node.value.split())
    return found


@cache
def owners():
    """Return the modules that define each public name."""
    found = {}
    for module in modules():
        for name in definitions(PACKAGE / module):
            found.setdefault(name, []).append(module)
    return found


def definitions(path):
    """Return the public classes, functions and constants of a module."""
    body = ast.parse(path.read_text()).body
    found = {one.name for one in body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
    for one in body:
        targets = one.targets if isinstance(one, ast.Assign) else []
        found |= {each.id for each in targets if isinstance(each, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def mentions(test, module):
    """Whether a test file imports a module, or uses a name that this module alone defines."""
    dotted = ".".join(["opendp_concurrent", *Path(module).with_suffix("").parts])
    alone = {one for one in definitions(PACKAGE / module) if len(owners()[one]) == 1}
    return not words(test).isdisjoint({dotted} | alone)


def test_each_module_has_a_test_file():
    listed = {module for several in ELSEWHERE.values() for module in several}
    missing = without_mirror(modules()) - listed
    assert not missing, f"{sorted(missing)}: add the test file, or a line of the table"


def test_a_module_that_has_a_test_file_is_not_in_the_table():
    listed = [module for several in ELSEWHERE.values() for module in several]
    assert len(listed) == len(set(listed))
    assert set(listed) <= without_mirror(modules())


def test_the_other_file_tests_the_module():
    for test, several in ELSEWHERE.items():
        for module in several:
            assert mentions(TESTS / test, module), f"{test} does not use {module}"


def test_a_new_module_without_a_test_file_is_found():
    new = Path("accounts/unheard_of.py")
    assert without_mirror([*modules(), new]) - without_mirror(modules()) == {new.as_posix()}
    assert not mentions(TESTS / "arguments/test_checks.py", "fdp/atoms.py")
    assert mentions(TESTS / "arguments/test_checks.py", "arguments/checks.py")
