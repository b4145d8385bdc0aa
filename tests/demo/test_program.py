"""The command line of the demonstration: of a user's own file it prints noisy answers only."""

import re
import sys
from pathlib import Path

import polars
import pytest

from opendp_concurrent.demo import program

NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"
NOISY = re.compile(rf"about {NUMBER}")
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
    def run(path, *more, option="--csv", column="age", bounds=("0", "100")):
        arguments = [option, str(path), "--column", column, "--bounds", *bounds, *more]
        monkeypatch.setattr(sys, "argv", ["demo", *arguments])
        program.main()
        return capsys.readouterr().out

    return run


def without_noise(text):
    return NOISY.sub("about #", text)


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


def test_bounds_are_public_and_checked(demonstrate, tmp_path, capsys):
    path = write(tmp_path / "mine.csv", ROWS)
    for bounds in (("5", "5"), ("nan", "3"), ("0", "inf"), ("0", "1e200")):
        with pytest.raises(SystemExit):
            demonstrate(path, bounds=bounds)
        assert "--bounds (" in capsys.readouterr().err


def test_the_rule_and_the_rows_of_a_person_are_said(demonstrate, tmp_path):
    path = write(tmp_path / "mine.csv", ROWS)
    printed = demonstrate(path)
    assert "at most 1 row (--contributions)" in printed
    assert "rows without a finite number" in printed
    printed = demonstrate(path, "--contributions", "20")
    assert "at most 20 rows (--contributions)" in printed
    assert "of 1 at d_in=20" in printed


def test_parquet_is_read_by_the_same_rules(demonstrate, tmp_path):
    path, csv = tmp_path / "mine.parquet", tmp_path / "mine.csv"
    polars.DataFrame({"age": [30.0, None, 41.5]}).write_parquet(path)
    printed = demonstrate(path, option="--parquet").replace("mine.parquet", "mine.csv")
    assert without_noise(printed) == without_noise(demonstrate(write(csv, ["30", "", "41.5"])))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--contributions", "3"],
        ["--csv", "x"],
        ["--column", "x"],
        ["--parquet", "x", "--column", "x"],
    ]
    + [
        ["--csv", "x.csv", "--column", "a", "--bounds", "0", "1", "--contributions", value]
        for value in ("0", "-1", str(10**7), "x", "1.5")
    ],
)
def test_wrong_arguments_are_named(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo", *arguments])
    with pytest.raises(SystemExit):
        program.main()
    error = capsys.readouterr().err.splitlines()[-1]
    assert (
        "--contributions" if "--contributions" in arguments else "--csv (or --parquet)"
    ) in error


def test_without_a_file_it_shows_the_survey_and_what_is_gained(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo"])
    program.main()
    printed = capsys.readouterr().out
    assert "6,366 rows, published" in printed
    readme = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in readme.split("```text\n")[1:]]
    (quoted,) = (block.splitlines() for block in blocks if "\nseconds" in block)
    assert len(quoted) == 9
    for line in quoted:
        assert line.startswith("seconds") or line in printed.splitlines()
