"""Drafts the next migration for developers: `python -m governor.store.migrations "what changes"`.

The draft is the difference between the tables in the code and those the migrations make. Read it, then
add its revision to `OURS` in `governor.store.migrate`.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from alembic import command
from alembic.script import Script

from governor.store.connect import make_engine
from governor.store.migrate import OURS, Scripts, alembic_config, upgrade


def draft(what: str, scripts: Scripts = OURS) -> Path:
    """Write the next step's file into the scripts' folder and return its path."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "as_migrated.db"
        engine = make_engine(path)
        upgrade(engine, path, scripts)
        with engine.begin() as connection:
            config = alembic_config(connection, scripts)
            revision = f"{len(scripts.revisions) + 1:04}"
            script = command.revision(config, what, autogenerate=True, rev_id=revision)
        engine.dispose()
    assert isinstance(script, Script)  # noqa: S101 - one head, so one script
    return Path(script.path)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m governor.store.migrations", description=__doc__)
    parser.add_argument("what", help="what changes, in a few words")
    sys.stdout.write(f"{draft(parser.parse_args().what)}\n")


if __name__ == "__main__":
    main()
