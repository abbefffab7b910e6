"""The database: its file, its schema, its dumps.

python3 -m app.database migrate | dump FILE | load FILE
"""
import os
import sqlite3
import sys
from pathlib import Path

FILE = Path(os.environ["CORPUS_DATA"]) / "app.db"
# One after the other; how many ran is kept in the database itself.
MIGRATIONS = [
    "create table note (id integer primary key, text text not null)",
    "alter table note add column at text not null default ''",
]


def connect():
    database = sqlite3.connect(FILE, timeout=10)
    database.execute("pragma journal_mode = wal")
    return database


def version(database):
    return database.execute("pragma user_version").fetchone()[0]


def migrate():
    database = connect()
    for number in range(version(database), len(MIGRATIONS)):
        database.execute("begin")
        database.execute(MIGRATIONS[number])
        database.execute(f"pragma user_version = {number + 1}")
        database.commit()
        print("migration", number + 1)


def dump(path):
    if not FILE.exists():
        print("there is no database yet")
        return
    database = connect()
    lines = [*database.iterdump(), f"pragma user_version = {version(database)};"]
    Path(path).write_text("\n".join(lines), encoding="utf-8")
    print("dumped", database.execute("select count(*) from note").fetchone()[0], "notes to", path)


def load(path):
    """Loads beside the database, then takes its place: there is never half a database."""
    new = FILE.with_suffix(".new")
    new.unlink(missing_ok=True)
    database = sqlite3.connect(new)
    database.executescript(Path(path).read_text(encoding="utf-8"))
    database.close()
    for log in ("-wal", "-shm"):
        FILE.with_name(FILE.name + log).unlink(missing_ok=True)
    new.replace(FILE)
    print("loaded", path)


if __name__ == "__main__":
    {"migrate": migrate, "dump": dump, "load": load}[sys.argv[1]](*sys.argv[2:])
