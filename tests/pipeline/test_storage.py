"""What a database that cannot be used says: always a sentence, whatever SQLite calls it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from pipeline.errors import UserError
from pipeline.storage import open_storage


class Refusing(sqlite3.Cursor):
    """A cursor whose statements fail as SQLite makes them fail."""

    code = 0

    def execute(self, *_: object) -> Refusing:
        error = sqlite3.OperationalError("locking protocol" if self.code == sqlite3.SQLITE_PROTOCOL else "out of luck")
        error.sqlite_errorcode = self.code
        raise error


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_PROTOCOL, "is locked by another process"),
        (sqlite3.SQLITE_INTERRUPT, "cannot be used now: out of luck"),
    ],
)
def test_trouble_that_is_nobodys_mistake_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    engine = open_storage(tmp_path / "catalog.db", busy_timeout_s=1)
    monkeypatch.setattr(Refusing, "code", code)
    with engine.connect() as connection:
        driver = connection.connection.dbapi_connection
        assert driver is not None
        connection.begin()
        monkeypatch.setattr(connection.dialect, "do_execute", lambda cursor, *_: Refusing(driver).execute())
        with pytest.raises(UserError, match=said):
            connection.execute(text("SELECT 1"))


def test_a_faulty_query_of_ours_stays_an_error(tmp_path: Path) -> None:
    engine = open_storage(tmp_path / "catalog.db", busy_timeout_s=1)
    with engine.connect() as connection, pytest.raises(OperationalError, match="no such table"):
        connection.execute(text("SELECT * FROM absent"))
