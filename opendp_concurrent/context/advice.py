"""What to write in place of names that pandas, Polars or SQL have, on each kind of data."""

_NO_ROWS = "no query returns rows; end it with noise and release(), such as count().laplace()"
_SCAN = "scan the data as a table, oc.tables.scan(frame, schema, unit), whose queries have "
_LISTS = {
    "filter where": "filter the data before the context is made; or " + _SCAN + "where",
    "group_by groupby agg histogram value_counts": "use count_by_categories([...])",
    "median quantile": "use private_quantile(candidates=[...], alpha=0.5)",
    "std stdev var": _SCAN + "stdev",
    "average avg": "use impute_constant(0.0).clamp((0.0, 10.0)).resize(100, 5.0).mean()",
    "len size": "use count()",
    "head tail limit collect show": _NO_ROWS,
}
_TABLES = {
    "filter query": "use where(oc.tables.col('age') >= 18)",
    "group_by groupby": "use by= and keys=, such as count(by='region', keys=['north', 'south'])",
    "agg aggregate": "use select(n=few.count(), age=few.mean('age', (0, 120)))",
    "value_counts": "use count(by='region', keys=['north', 'south'])",
    "std std_dev": "use stdev('age', (0, 120))",
    "var": "use variance('age', (0, 120))",
    "average avg": "use mean('age', (0, 120))",
    "len size": "use count()",
    "n_unique nunique unique": "use distinct_units(), or count_distinct('region')",
    "drop rename": "use select(['age', 'region']), or with_columns(years=oc.tables.col('age'))",
    "assign with_column map": "use with_columns(old=oc.tables.col('age') > 64)",
    "merge": "use join for public rows, join_private for a table of with_tables",
    "head tail limit collect show": _NO_ROWS,
}
_FRAMES = {  # which Polars does not have
    "where": "use filter(pl.col('age') >= 18)",
    "groupby": "use group_by('region').agg(dp.len())",
    "agg": "use select(...), or group_by('region').agg(dp.len())",
    "len size": "use select(dp.len())",
    "average avg": "use select(pl.col('age').fill_null(0).dp.mean((0, 120)))",
    "std_dev stdev": _SCAN + "stdev",
}


def _each(kind: str, table: dict[str, str]) -> dict[str, str]:
    return {
        name: f"a query on a {kind} has no {name}: {text}"
        for names, text in table.items()
        for name in names.split()
    }


LISTS, TABLES, FRAMES = _each("list", _LISTS), _each("table", _TABLES), _each("LazyFrame", _FRAMES)
