"""The demonstration printed how many rows a user's own file has, and knew no person with two."""

import builtins
import re
import subprocess
import sys

import opendp.prelude as dp
import polars
import pytest

from opendp_concurrent import __main__
from opendp_concurrent.demo import data, launches

dp.enable_features("contrib", "honest-but-curious")

BOUNDS = (0.0, 100.0)
NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"
NOISY = re.compile(rf"(about|median|mean) {NUMBER}")
ROWS = ["30", "41.5", "17", "99"]


def write(path, cells, header="name,age"):
    lines = [header.encode()]
    for number, cell in enumerate(cells):
        cell = cell if isinstance(cell, bytes) else cell.encode()
        lines.append(b"n%d,%b" % (number, cell))
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture
def demonstrate(monkeypatch, capsys):
    """Run the demonstration in this process; OpenDP's crash in another one is not repeated."""
    crashed = subprocess.CompletedProcess([], -6)
    monkeypatch.setattr(launches.subprocess, "run", lambda *_, **__: crashed)

    def run(path, *more, column="age", bounds=("0", "100")):
        arguments = ["--csv", str(path), "--column", column, "--bounds", *bounds, *more]
        monkeypatch.setattr(sys, "argv", ["demo", *arguments])
        __main__.main()
        return capsys.readouterr().out

    return run


def without_noise(text):
    return NOISY.sub(r"\1 #", text)


NEIGHBOURS = {
    "one row less": ROWS[:-1],
    "a missing cell": [*ROWS, ""],
    "a cell of text": [*ROWS, "secret"],
    "no number": [*ROWS, "nan"],
    "infinite": [*ROWS, "-inf"],
    "too large for a double": [*ROWS, "1e999"],
    "outside of the bounds": [*ROWS, "-1e300"],
    "more cells than columns": [*ROWS, "1,2,3,4"],
    "no such text": [*ROWS, b"\xff\xfe"],
    "a null": [*ROWS, b"3\x000"],
    "a long cell": [*ROWS, "7" * 200_000],
    "an open quote": [*ROWS, '"41'],
    "a carriage return": [*ROWS, "4\r1"],
}


def test_files_that_differ_in_a_row_differ_in_noisy_answers_only(demonstrate, tmp_path):
    path = tmp_path / "mine.csv"
    expected = without_noise(demonstrate(write(path, ROWS)))
    assert NOISY.search(demonstrate(path))
    for name, cells in NEIGHBOURS.items():
        assert without_noise(demonstrate(write(path, cells))) == expected, name
    path.write_text("name,age\n41,\n\n")
    assert without_noise(demonstrate(path)) == expected  # a row without cells
    for cells in ([], ["3"]):
        assert without_noise(demonstrate(write(path, cells))) == expected


def test_nothing_exact_is_printed(demonstrate, tmp_path):
    many = [f"{30 + number % 7}" for number in range(1237)]
    printed = without_noise(demonstrate(write(tmp_path / "mine.csv", [*many, "", "x"])))
    for exact in ("1237", "1238", "1239", "1,23"):
        assert exact not in printed
    assert "ms" not in printed.split()  # nor how long it took


def test_errors_tell_of_the_structure_only(demonstrate, tmp_path):
    path = tmp_path / "mine.csv"
    for cells in ([], ROWS):
        write(path, cells)
        with pytest.raises(SystemExit, match=r"--column \(height\) is not in the header"):
            demonstrate(path, column="height")
    path.write_bytes(b"")
    with pytest.raises(SystemExit, match="is not in the header"):
        demonstrate(path)
    with pytest.raises(SystemExit, match="cannot be read"):
        demonstrate(tmp_path / "none.csv")
    for bounds in (("5", "5"), ("nan", "3"), ("0", "inf"), ("0", "1e200")):
        with pytest.raises(SystemExit, match="--bounds"):
            demonstrate(write(path, ROWS), bounds=bounds)


def test_a_row_stays_a_row():
    """The rule for missing cells is public, and moves nothing but that row."""
    assert data._number("", 50.0) == data._number(None, 50.0) == data._number("nan", 50.0) == 50.0
    assert data._number("12.5", 50.0) == 12.5


def test_missing_cells_are_counted_and_not_dropped(tmp_path):
    path = write(tmp_path / "mine.csv", [*ROWS, "", "x", "nan"])
    _, values, bounds = data.table(str(path), "age", [0.0, 100.0])
    assert values == [30.0, 41.5, 17.0, 99.0, 50.0, 50.0, 50.0]
    assert bounds == BOUNDS


def test_the_rule_and_the_rows_of_a_person_are_said(demonstrate, tmp_path):
    path = write(tmp_path / "mine.csv", ROWS)
    printed = demonstrate(path)
    assert "at most 1 row (--contributions)" in printed
    assert "count as 50, the middle of --bounds" in printed
    assert "at most 20 rows (--contributions)" in demonstrate(path, "--contributions", "20")


@pytest.mark.parametrize("contributions", [1, 3, 20, 10**6])
def test_every_launch_is_priced_for_the_rows_of_a_person(contributions):
    session = launches.Session(launches.Ours, [30.0] * 10, BOUNDS, contributions)
    assert session.count(1 / 8).map(contributions) == 1 / 8
    assert session.below(50.0, 1 / 32).map(contributions) == 1 / 32
    outcomes = launches.run(session)
    refused = [name for name, _, _, ran, _, _ in outcomes if not ran]
    assert refused == ["ask too much"]
    assert session.root.privacy_loss(contributions) == 0.625
    if contributions > 1:
        with pytest.raises(Exception, match="must be at most"):
            session.root.privacy_loss(contributions + 1)


def test_rows_of_a_person_are_for_a_file_of_ones_own(monkeypatch, capsys):
    for arguments in (["--contributions", "3"], ["--contributions", "0"]):
        monkeypatch.setattr(sys, "argv", ["demo", *arguments])
        with pytest.raises(SystemExit):
            __main__.main()
        assert "--contributions" in capsys.readouterr().err
    own = ["--csv", "x.csv", "--column", "a", "--bounds", "0", "1"]
    for value in ("0", "-1", str(10**7), "x", "1.5"):
        monkeypatch.setattr(sys, "argv", ["demo", *own, "--contributions", value])
        with pytest.raises(SystemExit):
            __main__.main()
        assert "--contributions" in capsys.readouterr().err


def test_parquet_is_read_by_the_same_rules(demonstrate, tmp_path):
    path, csv = tmp_path / "mine.parquet", tmp_path / "mine.csv"
    for cells in ([30.0, 41.5], [30.0, 41.5, None], [float("nan"), float("inf")], []):
        frame = polars.DataFrame({"age": polars.Series(cells, dtype=polars.Float64)})
        frame.write_parquet(path)
        expected = ["" if cell is None else str(cell) for cell in cells]
        _, values, _ = data.table(str(path), "age", [0.0, 100.0])
        assert values == data.table(str(write(csv, expected)), "age", [0.0, 100.0])[1]
        printed = without_noise(demonstrate(path))
        assert printed.replace("mine.parquet", "mine.csv") == without_noise(demonstrate(csv))
    polars.DataFrame({"age": [3], "name": ["secret"]}).write_parquet(path)
    with pytest.raises(SystemExit, match="must have numbers, its type is String"):
        demonstrate(path, column="name")
    with pytest.raises(SystemExit, match="is not in"):
        demonstrate(path, column="height")
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(SystemExit, match="cannot be read as a Parquet file"):
        demonstrate(path)


def test_without_polars_a_parquet_file_is_a_clear_error(demonstrate, tmp_path, monkeypatch):
    path, real = tmp_path / "mine.parquet", builtins.__import__
    polars.DataFrame({"age": [3]}).write_parquet(path)

    def without_polars(name, *more):
        if name == "polars":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without_polars)
    with pytest.raises(SystemExit, match="pip install polars, or write the table as CSV"):
        demonstrate(path)
