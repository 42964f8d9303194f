"""Databases of agents: read with the log beside them while they are written, and nothing is left or changed there."""

import gzip
import os
import sqlite3
import struct
from contextlib import closing

import pytest

from inspector.sessions import intake, open_paths
from inspector.sessions.importers import database
from inspector.sessions.importers.database import has, schema, snapshot
from inspector.sessions.recording import UnreadableError


@pytest.fixture
def live(tmp_path):
    """A database whose newest row stands in its log alone, and the connection that keeps it so."""
    path = tmp_path / "agent.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("CREATE TABLE message (id, Data)")
        writer.execute("INSERT INTO message VALUES ('m1', '{}')")
        writer.commit()
        yield str(path)


@pytest.mark.parametrize(("pack", "told"), [
    (gzip.compress, "packed.db: a compressed database, which has to be unpacked first"),  # and nothing else
    (lambda data: data[:40], "packed.db: a database that cannot be read (a damaged database: "),
])
def test_a_database_that_is_not_read_says_why(tmp_path, live, pack, told):
    path = tmp_path / "packed.db"
    with open(live, "rb") as file:
        path.write_bytes(pack(file.read()))
    error = str(open_paths([str(path)]).inputs[0].error)
    assert told in error
    assert error.endswith("first") is (pack is gzip.compress)
    assert "\n" not in error


def test_rows_that_stand_in_the_log_are_read(live):
    with snapshot(live) as database:
        assert [tuple(row) for row in database.execute("SELECT id, data FROM message")] == [("m1", "{}")]
    assert has(schema(live), "message", "id", "data")
    assert not has(schema(live), "message", "role")
    assert not has(schema(live), "part")


def test_what_was_not_committed_is_rolled_back_where_it_stands_in_the_file_already(tmp_path):
    path = tmp_path / "agent.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.executescript("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2; CREATE TABLE message (data)")
        writer.executemany("INSERT INTO message VALUES (?)", [("old" + "x" * 2000,)] * 50)
        writer.execute("BEGIN")
        writer.execute("UPDATE message SET data = 'new' || substr(data, 4)")
        assert b"newx" in path.read_bytes()  # the cache of the writer is too small for it
        before = sorted(os.listdir(tmp_path))
        with snapshot(str(path)) as database:
            assert {row[0][:3] for row in database.execute("SELECT data FROM message")} == {"old"}
        assert sorted(os.listdir(tmp_path)) == before == ["agent.db", "agent.db-journal"]


def test_the_file_that_a_journal_names_is_neither_read_nor_deleted(tmp_path):
    path, named = tmp_path / "agent.db", tmp_path / "precious"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("CREATE TABLE message (id)")
        writer.execute("INSERT INTO message VALUES ('m1')")
        page, pages = (writer.execute(f"PRAGMA {each}").fetchone()[0] for each in ("page_size", "page_count"))
    # The Rollback Journal in sqlite.org/fileformat2.html: a header without pages, then the name of a super-journal.
    magic, name = bytes.fromhex("d9d505f920a163d7"), str(named).encode()
    header = magic + struct.pack(">5I", 0, 1, pages, 512, page)
    end = struct.pack(">I", (1 << 30) // page + 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    (tmp_path / "agent.db-journal").write_bytes(header.ljust(512, b"\0") + end)
    for make in (lambda: named.write_bytes(b"kept"), lambda: os.mkfifo(named)):
        make()
        with snapshot(str(path)) as database:
            assert [row[0] for row in database.execute("SELECT id FROM message")] == ["m1"]
        assert named.exists()
        named.unlink()


def test_nothing_beside_it_changes(live, tmp_path):
    def state():
        return {entry.name: (entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(tmp_path)}

    before = state()
    with pytest.raises(UnreadableError, match="readonly"), snapshot(live) as database:
        database.execute("INSERT INTO message VALUES ('m2', '{}')")
    assert state() == before


@pytest.mark.parametrize("cut", [20, 200, 5000])
def test_a_damaged_database_is_one_line(tmp_path, live, cut):
    path = tmp_path / "cut.db"
    path.write_bytes((b"SQLite format 3\0" + b"\1" * 10_000)[:cut])
    assert schema(str(path)) == {}
    with pytest.raises(UnreadableError, match="a damaged database: "), snapshot(str(path)) as database:
        database.execute("SELECT * FROM message").fetchall()


def test_a_database_beyond_the_bound_is_refused(live, monkeypatch):
    monkeypatch.setattr(intake, "_most", 1000)
    with pytest.raises(UnreadableError, match="--max-bytes"), snapshot(live):
        pass


def test_one_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(UnreadableError, match="no database there"), snapshot(str(tmp_path / "no.db")):
        pass
    assert schema(str(tmp_path / "no.db")) == {}


def test_a_schema_whose_name_is_no_text_is_one_line(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY)")
        base.commit()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE sessions", b"CREATE TABL\xff sessions"))
    with pytest.raises(UnreadableError, match="a damaged database"), snapshot(str(path)) as base:
        base.execute("SELECT * FROM sessions").fetchall()
    assert schema(str(path)) == {}


@pytest.mark.parametrize("query", [
    "SELECT a.id FROM spans a, spans b, spans c",  # steps
    "SELECT zeroblob(90000) FROM spans",  # bytes of all rows
    "SELECT zeroblob(2000000) FROM spans LIMIT 1",  # bytes of a value
])
def test_rows_that_are_far_more_than_the_file_are_refused(tmp_path, monkeypatch, query):
    monkeypatch.setattr(database, "_STEPS_PER_BYTE", 1)  # to be quick
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE spans (id)")
        base.executemany("INSERT INTO spans VALUES (?)", [(at,) for at in range(600)])
        base.commit()
    with pytest.raises(UnreadableError, match="a damaged database: "), snapshot(str(path)) as base:
        for _ in base.execute(query):
            pass


def test_a_device_beside_a_database_is_not_copied(tmp_path, monkeypatch):
    path, copied = tmp_path / "a.db", []
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE spans (id)")
        base.commit()
    (tmp_path / "a.db-wal").symlink_to("/dev/zero")
    monkeypatch.setattr(database.shutil, "copyfile", lambda source, target: copied.append(source))
    database._copy(str(path), str(tmp_path / "copy.db"), intake.most())
    assert copied == [str(path)]


@pytest.mark.parametrize("name", [b"plain.db", b"a?b#%41\xff.db"])
def test_tables_are_read_without_a_copy_unless_the_database_has_a_log(tmp_path, monkeypatch, name) -> None:
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), name))
    writer = sqlite3.connect(path)
    writer.execute("CREATE TABLE old (a)")
    writer.commit()
    with monkeypatch.context() as no_copies:
        no_copies.setattr(database, "_copy", lambda *_: pytest.fail("the file was copied"))
        assert database.schema(path) == {"old": {"a"}}
        assert database.why_unread(path) == ""
    assert os.listdir(os.fsencode(tmp_path)) == [name]
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE new (b)")
    writer.commit()  # the log is not written into the file before the connection is closed
    assert database.schema(path) == {"old": {"a"}, "new": {"b"}}
    writer.close()
