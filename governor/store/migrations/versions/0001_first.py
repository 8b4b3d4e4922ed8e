"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("token_sha256", sa.String(), nullable=True),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name"),
        sa.UniqueConstraint("token_sha256"),
    )

    op.create_table(
        "agent_grant",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("sha256"),
    )

    op.create_table(
        "audit_record",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("direction", sa.String(), nullable=True),
        sa.Column("peer", sa.String(), nullable=True),
        sa.Column("agent", sa.String(), nullable=True),
        sa.Column("message_id", sa.String(), nullable=True),
        sa.Column("conversation", sa.String(), nullable=True),
        sa.Column("size", sa.Integer(), nullable=True),
        sa.Column("sha256", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("detail", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("audit_at", "audit_record", ["at"], unique=False)
    op.create_index("audit_message", "audit_record", ["message_id"], unique=False)

    op.create_table(
        "control_taken",
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("n"),
    )
    op.create_index(op.f("ix_control_taken_peer"), "control_taken", ["peer"], unique=False)

    op.create_table(
        "control_webhook",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_control_webhook_peer"), "control_webhook", ["peer"], unique=False)

    op.create_table(
        "host_key",
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("certificate", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retire_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("fingerprint"),
    )

    op.create_table(
        "host_state",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )

    op.create_table(
        "message",
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("direction", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("sender", sa.String(), nullable=False),
        sa.Column("recipient", sa.String(), nullable=False),
        sa.Column("conversation", sa.String(), nullable=False),
        sa.Column("in_reply_to", sa.String(), nullable=True),
        sa.Column("hops", sa.Integer(), nullable=False),
        sa.Column("lineage", sa.JSON(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=True),
        sa.Column("rewrite", sa.String(), nullable=True),
        sa.Column("clean", sa.String(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("not_authenticated", sa.Integer(), nullable=False),
        sa.Column("left", sa.Boolean(), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("shown_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("receipt", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("text_erase_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("clean_erase_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("n"),
        sa.UniqueConstraint("peer", "direction", "id"),
    )
    op.create_index(op.f("ix_message_id"), "message", ["id"], unique=False)
    op.create_index(op.f("ix_message_peer"), "message", ["peer"], unique=False)
    op.create_index("message_conversation", "message", ["peer", "conversation"], unique=False)
    op.create_index("message_open", "message", ["direction", "state"], unique=False)

    op.create_table(
        "model_call",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("stop_reason", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )

    op.create_table(
        "notice",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("peer", sa.String(), nullable=True),
        sa.Column("ours", sa.String(), nullable=False),
        sa.Column("foreign", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("posted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("post_id", sa.Integer(), nullable=True),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )

    op.create_table(
        "operator_code",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("enrolled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_step", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("lockouts", sa.Integer(), nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("locked_for_good", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )

    op.create_table(
        "peer",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("public_tls", sa.Boolean(), nullable=False),
        sa.Column("agents", sa.JSON(), nullable=False),
        sa.Column("paired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )

    op.create_table(
        "seen_webhook",
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("keep_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("peer", "webhook_id"),
    )

    op.create_table(
        "telegram_update",
        sa.Column("bot_id", sa.Integer(), nullable=False),
        sa.Column("update_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("bot_id", "update_id"),
    )

    op.create_table(
        "wire_entry",
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("direction", sa.String(), nullable=False),
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("n"),
        sa.UniqueConstraint("peer", "direction", "webhook_id"),
    )
    op.create_index(op.f("ix_wire_entry_peer"), "wire_entry", ["peer"], unique=False)

    op.create_table(
        "link",
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("switch", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("watched_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("out_used", sa.Integer(), nullable=False),
        sa.Column("in_used", sa.Integer(), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acted_by", sa.String(), nullable=True),
        sa.Column("acted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seq_out", sa.Integer(), nullable=False),
        sa.Column("reader_failures", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["peer"],
            ["peer.name"],
        ),
        sa.PrimaryKeyConstraint("peer"),
    )

    op.create_table(
        "peer_key",
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("peer", sa.String(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("certificate", sa.LargeBinary(), nullable=False),
        sa.Column("certificate_fingerprint", sa.String(), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.Column("valid_until", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["peer"],
            ["peer.name"],
        ),
        sa.PrimaryKeyConstraint("fingerprint"),
    )
    op.create_index(
        op.f("ix_peer_key_certificate_fingerprint"), "peer_key", ["certificate_fingerprint"], unique=False
    )
    op.create_index(op.f("ix_peer_key_peer"), "peer_key", ["peer"], unique=False)
