from math import isnan, nan

import polars
import pytest

from opendp_concurrent.demo import data

CELLS = ["30", "41.5", "", "x", "nan", "-inf", "1e999", "17"]


def same(values, expected):
    return [None if isnan(value) else value for value in values] == expected


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("name,age\n" + "".join(f"n,{cell}\n" for cell in CELLS))
    return str(path)


def test_a_row_stays_a_row_and_without_a_number_it_is_missing(csv):
    none = [None] * 5
    assert same(data.column(csv, "age"), [30.0, 41.5, *none, 17.0])
    assert same(data.column(csv, "name"), [None] * len(CELLS))


@pytest.mark.parametrize("cells", [[30.0, None], [nan, float("inf")], []])
def test_parquet_is_read_by_the_same_rules(cells, tmp_path):
    path = tmp_path / "mine.data"
    frame = polars.DataFrame({"age": polars.Series(cells, dtype=polars.Float64)})
    frame.write_parquet(path)
    assert same(
        data.column(str(path), "age"),
        [30.0, None][: len(cells)] if None in cells else [None] * len(cells),
    )


def test_a_parquet_file_is_refused_by_its_structure_only(tmp_path):
    path = tmp_path / "mine.parquet"
    polars.DataFrame({"age": [3], "name": ["secret"]}).write_parquet(path)
    with pytest.raises(SystemExit, match="must have numbers, its type is String"):
        data.column(str(path), "name")
    with pytest.raises(SystemExit, match="is not in"):
        data.column(str(path), "height")
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(SystemExit, match="cannot be read as a Parquet file"):
        data.column(str(path), "age")


def test_without_polars_a_parquet_file_is_a_clear_error(tmp_path, monkeypatch):
    path = tmp_path / "mine.parquet"
    polars.DataFrame({"age": [3]}).write_parquet(path)
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(SystemExit, match="pip install polars, or write the table as CSV"):
        data.column(str(path), "age")


def test_a_csv_file_is_refused_by_its_structure_only(csv, tmp_path):
    with pytest.raises(SystemExit, match=r"--column \(height\) is not in the header"):
        data.column(csv, "height")
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    with pytest.raises(SystemExit, match="is not in the header"):
        data.column(str(empty), "age")
    with pytest.raises(SystemExit, match="cannot be read"):
        data.column(str(tmp_path / "none.csv"), "age")


def test_the_survey_is_found_without_importing_what_ships_it():
    ages = data.ages()
    assert (len(ages), min(ages), max(ages)) == (6366, 17.5, 42.0)


def test_without_the_survey_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(data, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="the extra 'demo'"):
        data.ages()
