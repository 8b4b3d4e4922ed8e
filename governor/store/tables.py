"""The tables. Each row class says who writes it; use cases change rows inside one unit of work.

States and reasons are stored as the plain strings of the enums in `governor.message`. Datetimes are
aware UTC. Text columns are erased (set to NULL) when their time is over; rows and hashes stay.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, Index, UniqueConstraint
from sqlmodel import Field, SQLModel


class HostState(SQLModel, table=True):
    """Single facts of this host that must outlive the process (last tick, settings snapshot ...)."""

    __tablename__ = "host_state"

    key: str = Field(primary_key=True)
    value: str


class HostKey(SQLModel, table=True):
    """A signing key of ours with its certificate; the private halves are files named by fingerprint."""

    __tablename__ = "host_key"

    fingerprint: str = Field(primary_key=True)
    state: str  # active | incoming | retiring | retired
    public_key: bytes
    certificate: bytes  # DER
    created_at: datetime
    retire_at: datetime | None = None


class Peer(SQLModel, table=True):
    """Another governor we have exchanged pairing lines with."""

    __tablename__ = "peer"

    name: str = Field(primary_key=True)
    state: str  # offered | confirmed | revoked
    url: str
    public_tls: bool = False  # its URL shows a certificate of a public authority (Tailscale Serve)
    agents: list[str] = Field(sa_column=Column(JSON, nullable=False))
    paired_at: datetime
    confirmed_at: datetime | None = None
    revoked_at: datetime | None = None


class PeerKey(SQLModel, table=True):
    """A key and certificate of a peer; two are valid during the overlap of a rotation."""

    __tablename__ = "peer_key"

    fingerprint: str = Field(primary_key=True)
    peer: str = Field(foreign_key="peer.name", index=True)
    public_key: bytes
    certificate: bytes  # DER
    certificate_fingerprint: str = Field(index=True)
    current: bool
    valid_until: datetime | None = None


class Link(SQLModel, table=True):
    """The switch and the counters of our relation to one peer."""

    __tablename__ = "link"

    peer: str = Field(primary_key=True, foreign_key="peer.name")
    switch: str
    reason: str | None = None
    version: int
    watched_until: datetime | None = None
    out_used: int = 0
    in_used: int = 0
    closed_at: datetime | None = None
    seen_at: datetime | None = None
    acted_by: str | None = None
    acted_at: datetime | None = None
    seq_out: int = 0
    reader_failures: int = 0


class WireEntry(SQLModel, table=True):
    """The per-link wire log: ids and hashes of what crossed, chained by `head`."""

    __tablename__ = "wire_entry"
    __table_args__ = (UniqueConstraint("peer", "direction", "webhook_id"),)

    n: int | None = Field(default=None, primary_key=True)
    peer: str = Field(index=True)
    direction: str
    webhook_id: str
    sha256: str
    head: str
    at: datetime


class Agent(SQLModel, table=True):
    """A local agent; only the hash of its token is kept."""

    __tablename__ = "agent"

    name: str = Field(primary_key=True)
    token_sha256: str | None = Field(default=None, unique=True)
    added_at: datetime
    removed_at: datetime | None = None


class Grant(SQLModel, table=True):
    """A one-time grant that an agent's own user turns into a credential file."""

    __tablename__ = "agent_grant"

    sha256: str = Field(primary_key=True)
    agent: str
    expires_at: datetime
    used_at: datetime | None = None


class Message(SQLModel, table=True):
    """A message in either direction, with its whole life."""

    __tablename__ = "message"
    __table_args__ = (
        UniqueConstraint("peer", "direction", "id"),
        Index("message_open", "direction", "state"),
        Index("message_conversation", "peer", "conversation"),
    )

    n: int | None = Field(default=None, primary_key=True)
    id: str = Field(index=True)
    peer: str = Field(index=True)
    direction: str
    state: str
    reason: str | None = None
    sender: str
    recipient: str
    conversation: str
    in_reply_to: str | None = None
    hops: int
    lineage: list[str] = Field(sa_column=Column(JSON, nullable=False))
    size: int  # code points
    sha256: str  # of the text, UTF-8
    text: str | None = None  # untrusted; ours: what our agent sent
    rewrite: str | None = None  # the reader's verdict, JSON of reader.contract.Rewrite
    clean: str | None = None  # rendered for the agent; CleanText
    body: bytes | None = None  # ours: the webhook's bytes, resent unchanged
    created_at: datetime
    expires_at: datetime
    next_attempt_at: datetime | None = None
    attempts: int = 0
    not_authenticated: int = 0  # how often the peer answered 401
    left: bool = False  # bytes of it may have reached the peer
    finished_at: datetime | None = None
    shown_at: datetime | None = None
    acked_at: datetime | None = None
    receipt: str | None = None
    error: str | None = None  # last trouble, for `governor show`
    text_erase_at: datetime | None = None
    clean_erase_at: datetime | None = None


class SeenWebhook(SQLModel, table=True):
    """A webhook id that was taken, with the answer it got; kept until expiry + 1 h."""

    __tablename__ = "seen_webhook"

    peer: str = Field(primary_key=True)
    webhook_id: str = Field(primary_key=True)
    sha256: str
    answer: bytes
    keep_until: datetime


class ControlWebhook(SQLModel, table=True):
    """A stop, hello, cancel or rotate that waits to reach a peer."""

    __tablename__ = "control_webhook"

    id: str = Field(primary_key=True)
    peer: str = Field(index=True)
    type: str
    data: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    body: bytes | None = None  # made at the first attempt, resent unchanged
    state: str  # pending | done | given_up | cancelled
    created_at: datetime
    expires_at: datetime
    next_attempt_at: datetime
    attempts: int = 0


class ControlTaken(SQLModel, table=True):
    """When a peer's control webhooks were taken: their own limit is 20 a minute."""

    __tablename__ = "control_taken"

    n: int | None = Field(default=None, primary_key=True)
    peer: str = Field(index=True)
    at: datetime


class Notice(SQLModel, table=True):
    """A sentence for the operators: ours plain, foreign text apart."""

    __tablename__ = "notice"

    id: int | None = Field(default=None, primary_key=True)
    lane: str  # answer | mirror
    peer: str | None = None
    ours: str
    foreign: str | None = None
    version: int | None = None  # the link's version, for a GO button
    created_at: datetime
    posted_at: datetime | None = None
    post_id: int | None = None
    next_attempt_at: datetime | None = None
    attempts: int = 0


class AuditRecord(SQLModel, table=True):
    """One line of the hash-chained log. Triggers refuse UPDATE and DELETE."""

    __tablename__ = "audit_record"
    __table_args__ = (Index("audit_at", "at"), Index("audit_message", "message_id"))

    seq: int = Field(primary_key=True)
    at: datetime
    event: str
    direction: str | None = None
    peer: str | None = None
    agent: str | None = None
    message_id: str | None = None
    conversation: str | None = None
    size: int | None = None
    sha256: str | None = None
    reason: str | None = None
    detail: dict[str, Any] | None = Field(
        default=None, sa_column=Column(JSON(none_as_null=True), nullable=True)
    )
    previous: str
    hash: str


class OperatorCode(SQLModel, table=True):
    """State of the operator's TOTP code: last step used, wrong tries, lock."""

    __tablename__ = "operator_code"

    id: int = Field(default=1, primary_key=True)
    enrolled_at: datetime
    last_step: int = 0
    failures: int = 0
    lockouts: int = 0
    locked_until: datetime | None = None
    locked_for_good: bool = False  # until a GO in Telegram


class ModelCall(SQLModel, table=True):
    """One call of the model by the reader's broker."""

    __tablename__ = "model_call"

    id: int | None = Field(default=None, primary_key=True)
    at: datetime
    peer: str
    message_id: str
    model: str
    input_tokens: int
    output_tokens: int
    seconds: float
    stop_reason: str
    verdict: str


class TelegramUpdate(SQLModel, table=True):
    """An update of a bot that was taken; recorded before the offset moves."""

    __tablename__ = "telegram_update"

    bot_id: int = Field(primary_key=True)
    update_id: int = Field(primary_key=True)
    at: datetime
