"""Triggers: what the file itself refuses, whoever opens it. They go away with who may write the file."""

TRIGGERS: dict[str, str] = {
    "audit_record_unchanged": """
        BEFORE UPDATE ON audit_record
        BEGIN SELECT RAISE(ABORT, 'audit records are never changed'); END
    """,
    "audit_record_kept": """
        BEFORE DELETE ON audit_record
        BEGIN SELECT RAISE(ABORT, 'audit records are never changed'); END
    """,
    # INSERT OR REPLACE deletes without a DELETE trigger: sqlite.org/lang_conflict.html
    "audit_record_at_end": """
        BEFORE INSERT ON audit_record
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM audit_record)
        BEGIN SELECT RAISE(ABORT, 'audit records are only added at the end'); END
    """,
}
"""Name -> definition. A change here needs a new revision, as a change of the tables does."""
