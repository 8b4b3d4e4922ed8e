"""Views for people who open the file with sqlite3 or Datasette; no view shows a text.

`docs/database.md` describes them. They are made anew at each upgrade, so a change here needs a new
revision, as a change of the tables does. Times are UTC, spans are seconds.
"""

VIEWS: dict[str, str] = {
    # one row a message: who, where it stands, how long it took, what its reading cost
    "v_exchanges": """
        SELECT
            m.n, m.created_at AS at, m.direction, m.peer, m.id, m.sender, m.recipient, m.conversation,
            m.in_reply_to, m.state, m.reason, m.size AS characters, m.sha256, m.hops, m.attempts,
            m.finished_at, m.shown_at, m.acked_at,
            round((julianday(arrived.at) - julianday(begun.at)) * 86400, 3) AS latency_seconds,
            (SELECT count(*) FROM message a
             WHERE a.in_reply_to = m.id AND a.peer = m.peer AND a.direction <> m.direction) AS answers,
            (SELECT model FROM model_call c
             WHERE c.message_id = m.id AND c.peer = m.peer ORDER BY c.id DESC LIMIT 1) AS model,
            (SELECT round(sum(seconds), 3) FROM model_call c
             WHERE c.message_id = m.id AND c.peer = m.peer) AS model_seconds,
            (SELECT sum(input_tokens + output_tokens) FROM model_call c
             WHERE c.message_id = m.id AND c.peer = m.peer) AS model_tokens
        FROM message m
        LEFT JOIN audit_record begun
            ON begun.message_id = m.id AND begun.peer = m.peer AND begun.direction = m.direction
            AND begun.event IN ('message_submitted', 'message_received')
        LEFT JOIN audit_record arrived
            ON arrived.message_id = m.id AND arrived.peer = m.peer AND arrived.direction = m.direction
            AND arrived.event IN ('message_accepted', 'message_read')
    """,
    # one row a peer: its switch and counters, and what waits
    "v_links": """
        SELECT
            l.peer, p.state AS peer_state, p.url, l.switch, l.reason, l.version, l.watched_until,
            l.out_used, l.in_used, l.closed_at, l.acted_by, l.acted_at,
            (SELECT count(*) FROM message m WHERE m.peer = l.peer AND m.direction = 'out'
             AND m.state IN ('queued', 'held', 'sending')) AS waiting_out,
            (SELECT count(*) FROM message m WHERE m.peer = l.peer AND m.direction = 'in'
             AND m.state IN ('received', 'reading', 'held')) AS waiting_in,
            (SELECT count(*) FROM message m WHERE m.peer = l.peer AND m.direction = 'in'
             AND m.state = 'ready' AND m.shown_at IS NULL) AS unread
        FROM link l JOIN peer p ON p.name = l.peer
    """,
    # one row a "no", or a minute's total of them
    "v_refusals": """
        SELECT
            seq, at, event, direction, peer, agent, message_id, reason,
            coalesce(json_extract(detail, '$.count'), 1) AS times
        FROM audit_record
        WHERE event IN ('message_refused', 'message_refused_in', 'message_dropped', 'message_ended',
                        'go_refused', 'code_refused', 'code_locked', 'webhook_refused')
    """,
    # the log without its hashes
    "v_audit": """
        SELECT
            seq, at, event, direction, peer, agent, message_id, conversation,
            size AS characters, sha256, reason, detail
        FROM audit_record
    """,
    # one row a day (UTC) and direction
    "v_daily": """
        SELECT
            date(at) AS day, direction,
            sum(event IN ('message_submitted', 'message_received')) AS messages,
            sum(CASE WHEN event IN ('message_submitted', 'message_received') THEN size ELSE 0 END)
                AS characters,
            sum(event IN ('message_refused', 'message_refused_in')) AS refused,
            sum(event = 'message_ended') AS ended,
            sum(event = 'message_dropped') AS dropped
        FROM audit_record
        WHERE direction IS NOT NULL AND event LIKE 'message~_%' ESCAPE '~'
        GROUP BY day, direction
    """,
    # who opened and closed the links, and why
    "v_stop_go": """
        SELECT seq, at, event, peer, reason, json_extract(detail, '$.version') AS version
        FROM audit_record
        WHERE event IN ('go', 'go_refused', 'stop', 'paused', 'peer_revoked')
    """,
}
"""Name -> query."""
