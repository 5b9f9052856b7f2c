"""An expression means the same in the generator, in a verifier's SQL and in the application's handlers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.blueprints.application.orm_source import OrmSource
from pipeline.blueprints.language.expressions import Kind, parse
from pipeline.blueprints.language.source import Place, Scalar
from pipeline.blueprints.make import Blueprint, blueprint, shipped_domain
from pipeline.blueprints.verifiers.sql_source import SqlSource

PLACE = Place("test", 1)


class Warehouse:
    """An environment made by rules, and the names its application defines, over a database file with its rows."""

    def __init__(self, path: Path) -> None:
        self.made = blueprint(shipped_domain("warehouse"), 3, 0)
        self.path = path
        build(self.made, path)
        self.names: dict[str, Any] = {"__name__": "warehouse_application"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DATABASE_PATH", f"sqlite:///{path}")
            exec(compile(self.made.environment.code or "", "warehouse", "exec"), self.names)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    there = Warehouse(tmp_path_factory.mktemp("expressions") / "warehouse.db")
    yield there
    there.names["engine"].dispose()


def build(made: Blueprint, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for table in made.environment.schema:
            db.execute(table.ddl)
        for rows in made.environment.sample:
            for insert in rows.inserts:
                db.execute(insert)


def numbers(row: str, depth: int) -> st.SearchStrategy[str]:
    fields = [f"{row}.{name}" for name in ("pieces", "reserved", "article.weight_kg", "bay.max_kg")]
    leaf = st.one_of(st.sampled_from(fields), st.integers(-9, 99).map(str))
    if depth == 0:
        return leaf
    inner = numbers(row, depth - 1)
    joined = st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    return st.one_of(
        leaf, joined, over(row, depth, ("sum({n} for {x} in pallet if {c})", "count({x} for {x} in pallet if {c})"))
    )


def over(row: str, depth: int, forms: tuple[str, ...]) -> st.SearchStrategy[str]:
    item = row + "x"
    parts = st.tuples(st.sampled_from(forms), numbers(item, 0), conditions(item, depth - 1, outer=row))
    return parts.map(lambda t: t[0].format(n=t[1], x=item, c=t[2]))


def conditions(row: str, depth: int, outer: str | None = None) -> st.SearchStrategy[str]:
    leaves = [
        f"{row}.status == 'blocked'",
        f"{row}.status in ('stored', 'shipped')",
        f"{row}.status not in ('stored', 'shipped')",
        f"{row}.bay.closed",
        f"not {row}.bay.closed",
        f"{row}.article.hazard != 'food'",
        f"({row}.article.hazard == 'food') == ({row}.bay.kind == 'dry')",
        f"days_between({row}.best_before, '2026-01-20') > 30",
        f"plus_days({row}.best_before, 7) >= '2026-03-01'",
    ]
    if outer:
        leaves += [f"{row} != {outer}", f"{row}.bay == {outer}.bay", f"{row}.article != {outer}.article"]
        leaves += [f"{row}.best_before <= {outer}.best_before", f"{outer}.pieces < {row}.pieces"]
    leaf = st.sampled_from(leaves)
    if depth <= 0:
        return leaf
    inner = conditions(row, depth - 1, outer)
    return st.one_of(
        leaf,
        st.tuples(inner, st.sampled_from(("and", "or")), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda text: f"not ({text})"),
        st.tuples(
            numbers(row, depth - 1), st.sampled_from(("<", "<=", "==", "!=", ">", ">=")), numbers(row, depth - 1)
        ).map(" ".join),
        over(
            row, depth, ("any({c} for {x} in pallet)", "all({c} for {x} in pallet)", "not any({c} for {x} in pallet)")
        ),
    )


expressions = st.one_of(
    numbers("pallet", 2), conditions("pallet", 2), over("pallet", 2, ("max({n} for {x} in pallet if {c})",))
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=expressions, at=st.integers(0, 10))
def test_the_three_ways_of_writing_an_expression_down_agree(warehouse: Warehouse, text: str, at: int):
    domain, world = warehouse.made.domain, warehouse.made.world
    pallet = world["pallet"][at]
    expression = parse(Scalar(text, PLACE), domain.scope.with_variables({"pallet": Kind("row", "pallet")}))

    here = world.value(expression, {"pallet": pallet})

    with closing(sqlite3.connect(warehouse.path)) as db:
        in_sql = db.execute(f"SELECT {SqlSource(domain).value(expression.node)}", {"pallet": pallet.id}).fetchone()[0]

    orm = OrmSource(domain)
    with warehouse.names["SessionLocal"]() as session:
        row = session.get(warehouse.names[domain.entities["pallet"].model], pallet.id)
        known = {**warehouse.names, "session": session, orm.name("pallet"): row}
        in_handler = eval(orm.value(expression.node), known)

    assert in_sql == here, text
    assert in_handler == here, text
