import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent, indent

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlmodel import SQLModel

from governor.errors import StoreError
from governor.store.connect import make_engine, store_errors
from governor.store.migrate import OURS, Scripts, upgrade
from governor.store.migrations.__main__ import draft
from governor.store.tables import Link, Peer, PeerKey
from governor.store.triggers import TRIGGERS
from governor.store.unit_of_work import Store
from governor.store.views import VIEWS

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "governor.db"


def names(path: Path, kind: str) -> set[str]:
    with closing(sqlite3.connect(path)) as raw:
        return {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))}


def fill(path: Path) -> None:
    store = Store(path)
    with store.begin() as uow:
        uow.add(Peer(name="eva-host", state="confirmed", url="https://eva", agents=["eva"], paired_at=NOW))
        uow.add(Link(peer="eva-host", switch="paused", version=1))
        uow.add(
            PeerKey(
                fingerprint="f" * 64,
                peer="eva-host",
                public_key=b"k",
                certificate=b"c",
                certificate_fingerprint="c" * 64,
                current=True,
            )
        )
    store.close()


def next_revision(folder: Path, body: str) -> Scripts:
    """Return scripts with one more step than ours, which an older file does not have yet."""
    shutil.copytree(OURS.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    step = (
        f"import sqlalchemy as sa\nfrom alembic import op\nrevision = '9999'\ndown_revision = '{OURS.head}'\n"
    )
    (folder / "versions" / "9999_next.py").write_text(f"{step}def upgrade():\n{indent(dedent(body), '    ')}")
    return Scripts(folder, (*OURS.revisions, "9999"))


def upgrade_to(path: Path, scripts: Scripts) -> None:
    engine = make_engine(path)
    try:
        with store_errors(path):
            upgrade(engine, path, scripts)
    finally:
        engine.dispose()


def test_the_migrations_make_exactly_the_tables_of_the_models(path: Path) -> None:
    Store(path).close()
    with make_engine(path).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SQLModel.metadata) == []


def test_the_listed_revisions_are_those_of_the_folder() -> None:
    steps = ScriptDirectory(str(OURS.folder)).walk_revisions()
    assert tuple(step.revision for step in steps)[::-1] == OURS.revisions


def test_a_new_file_has_all_views_and_triggers_and_no_copy_beside_it(path: Path) -> None:
    Store(path).close()
    assert names(path, "view") == set(VIEWS)
    assert names(path, "trigger") == set(TRIGGERS)
    assert not list(path.parent.glob("*.before-*"))


def test_a_file_that_is_up_to_date_is_opened_without_alembic(path: Path) -> None:
    Store(path).close()
    code = (
        "import sys; from pathlib import Path; from governor.store.unit_of_work import Store;"
        "Store(Path(sys.argv[1])).close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == 0


def test_a_file_of_a_newer_program_is_refused_and_unchanged(path: Path) -> None:
    Store(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '7777'")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"newer governor \(revision 7777\)"):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_of_another_program_is_refused_and_unchanged(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE places (url TEXT)")
    raw.close()
    with pytest.raises(StoreError, match="belongs to another program"):
        Store(path)
    assert names(path, "table") == {"places"}


def test_an_upgrade_that_rebuilds_a_table_keeps_rows_references_views_and_triggers(
    path: Path, tmp_path: Path
) -> None:
    fill(path)
    scripts = next_revision(
        tmp_path / "steps",
        """
            with op.batch_alter_table('peer', recreate='always') as batch:
                batch.add_column(sa.Column('note', sa.String(), nullable=True))
            with op.batch_alter_table('audit_record', recreate='always') as batch:
                batch.add_column(sa.Column('note', sa.String(), nullable=True))
        """,
    )
    upgrade_to(path, scripts)

    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT name, note FROM peer").fetchall() == [("eva-host", None)]
        assert raw.execute("SELECT peer FROM peer_key").fetchall() == [("eva-host",)]
        assert raw.execute("SELECT peer FROM v_links").fetchall() == [("eva-host",)]
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    assert names(path, "view") == set(VIEWS)
    assert names(path, "trigger") == set(TRIGGERS)


def test_the_file_is_copied_aside_for_its_owner_only_before_an_upgrade(path: Path, tmp_path: Path) -> None:
    fill(path)
    copy = Path(f"{path}.before-9999")
    copy.write_text("left over from an upgrade that was cut short")
    upgrade_to(path, next_revision(tmp_path / "steps", "op.execute('DELETE FROM link')"))

    assert copy.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(copy) as raw:
        assert raw.execute("SELECT peer FROM link").fetchall() == [("eva-host",)]
        assert raw.execute("SELECT version_num FROM alembic_version").fetchall() == [(OURS.head,)]
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT peer FROM link").fetchall() == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("op.execute('DELETE FROM link')\nop.execute('SELECT nonsense')", "no such column"),
        ("op.execute('DELETE FROM peer')", "would break references of table"),
    ],
)
def test_an_upgrade_that_fails_changes_nothing(path: Path, tmp_path: Path, body: str, message: str) -> None:
    fill(path)
    with pytest.raises(StoreError, match=message):
        upgrade_to(path, next_revision(tmp_path / "steps", body))

    store = Store(path)
    with store.reading() as uow:
        assert [link.peer for link in uow.all(Link)] == ["eva-host"]
    store.close()
    assert names(path, "trigger") == set(TRIGGERS)


def test_foreign_keys_are_on_again_after_an_upgrade(path: Path) -> None:
    store = Store(path)
    with store.reading() as uow:
        assert uow.session.connection().exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    store.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE audit_record SET reason = 'x'", "never changed"),
        ("DELETE FROM audit_record", "never changed"),
        (
            "INSERT OR REPLACE INTO audit_record (seq, at, event, previous, hash) VALUES (1, '', '', '', '')",
            "at the end",
        ),
        (
            "INSERT INTO audit_record (seq, at, event, previous, hash) VALUES (3, '', '', '', '')",
            "at the end",
        ),
    ],
)
def test_the_file_itself_refuses_to_change_the_audit_log(path: Path, statement: str, message: str) -> None:
    Store(path).close()
    insert = "INSERT INTO audit_record (seq, at, event, previous, hash) VALUES (1, 'at', 'go', 'p', 'h')"
    with sqlite3.connect(path) as raw:
        raw.execute(insert)
    with pytest.raises(sqlite3.IntegrityError, match=message):
        raw.execute(statement)
    assert raw.execute("SELECT seq, at, hash FROM audit_record").fetchall() == [(1, "at", "h")]


def test_the_next_step_is_drafted_from_what_changed_in_the_tables(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path / "steps", OURS.revisions)
    shutil.copytree(OURS.folder, scripts.folder, ignore=shutil.ignore_patterns("__pycache__"))
    for step in (scripts.folder / "versions").glob("*.py"):
        lines = [line for line in step.read_text().splitlines() if '"removed_at"' not in line]
        step.write_text("\n".join(lines))

    written = draft("Agents can go", scripts)

    assert written.name.endswith("_agents_can_go.py")
    path = tmp_path / "governor.db"
    revision = written.name.split("_")[0]
    upgrade_to(path, Scripts(scripts.folder, (*OURS.revisions, revision)))
    with closing(make_engine(path).connect()) as connection:
        differences = compare_metadata(MigrationContext.configure(connection), SQLModel.metadata)
    assert differences == []
