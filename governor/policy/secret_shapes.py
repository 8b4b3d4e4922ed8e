"""What credentials look like: one row a shape, with an example that a test finds by it.

A search must take time in proportion to the text. So every repeat is bounded, each pattern begins
with letters of its own, where the search can leap, and what has to stand before them is looked at
next. It stops at the shortest match that is certain.
"""

import re
from dataclasses import dataclass
from typing import Final

MADE_UP: Final = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF2gH4jK6mN8pQ0rS1tU3vW5xY7zA9bC1dE3fG5hJ7kL9mN2pQ4rS6tV8wX0"
_HEX: Final = "3f9a1c7e5b2d8064" * 4
_CAPITALS: Final = "7QJ4XN2PZK6WT3MB" * 4


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kind of credential looks like.

    `of` says whose it is, for people. `example` is made up, and written in two parts so that no
    scanner of repositories takes it for real. Where white space has been taken out, prose that speaks
    of a prefix runs on like a token: there a match must show so many `changes` between small letters,
    capitals and digits, or is not looked for at all (None).
    """

    kind: str
    of: str
    pattern: re.Pattern[str]
    example: str
    changes: int | None = 6


def _shape(kind: str, of: str, pattern: str, example: str, changes: int | None = 6) -> Shape:
    return Shape(kind, of, re.compile(pattern, re.ASCII), example, changes)


SHAPES: Final = (
    _shape("governor_token", "an agent here", r"bgt_[A-Za-z0-9_-]{43}", "bgt" + "_" + MADE_UP[:43]),
    _shape("governor_grant", "an agent here", r"bgg_[A-Za-z0-9_-]{22}", "bgg" + "_" + MADE_UP[:43]),
    # Clouds
    _shape(
        "aws_key_id", "AWS", r"A(?:KIA|SIA)(?<![A-Z0-9]....)[A-Z0-9]{16}", "AK" + "IA" + _CAPITALS[:16], 0
    ),
    _shape(
        "aws_secret_key",
        "AWS",
        r"ecret_?[Aa]ccess_?[Kk]ey[\"']? ?[:=] ?[\"']?[A-Za-z0-9/+]{40}",
        "aws_secret" + "_access_key = " + MADE_UP[:40],
    ),
    _shape(
        "aws_secret_key",
        "AWS",
        r"ECRET_ACCESS_KEY[\"']? ?[:=] ?[\"']?[A-Za-z0-9/+]{40}",
        "AWS_SECRET" + "_ACCESS_KEY=" + MADE_UP[:40],
    ),
    _shape("google_key", "Google Cloud", r"AIza[A-Za-z0-9_-]{35}", "AI" + "za" + MADE_UP[:35]),
    _shape(
        "google_token",
        "Google Cloud",
        r"ya29\.(?<![A-Za-z0-9].....)[A-Za-z0-9_-]{30}",
        "ya" + "29." + MADE_UP[:60],
    ),
    _shape("google_secret", "Google Cloud", r"GOCSPX-[A-Za-z0-9_-]{24}", "GOC" + "SPX-" + MADE_UP[:28]),
    _shape("azure_key", "Azure", r"AccountKey=[A-Za-z0-9+/]{60}", "Account" + "Key=" + MADE_UP[:86] + "=="),
    _shape(
        "azure_key",
        "Azure",
        r"SharedAccessKey=[A-Za-z0-9+/]{40}",
        "Shared" + "AccessKey=" + MADE_UP[:43] + "=",
    ),
    _shape(
        "azure_secret",
        "Azure",
        r"Q~(?<=[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_~.-]{31}",
        "aB3" + "8Q~" + MADE_UP[:34],
    ),
    _shape(
        "azure_signature",
        "Azure",
        r"sig=(?<=[?&;]sig=)[A-Za-z0-9%+/]{40}",
        "?sv=2025-01-05&" + "sig=" + MADE_UP[:43] + "%3D",
    ),
    _shape("digitalocean_token", "DigitalOcean", r"do[opr]_v1_[0-9a-f]{40}", "do" + "p_v1_" + _HEX),
    _shape(
        "tailscale_key",
        "Tailscale",
        r"tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{10}",
        "ts" + "key-auth-" + MADE_UP[:12] + "-" + MADE_UP[:32],
    ),
    _shape("vault_token", "HashiCorp Vault", r"hv[bs]\.[A-Za-z0-9_-]{24}", "hv" + "s." + MADE_UP[:90]),
    # Git hosts and package registries
    _shape("github_token", "GitHub", r"gh[pousr]_[A-Za-z0-9]{36}", "gh" + "p_" + MADE_UP[:36]),
    _shape("github_token", "GitHub", r"github_pat_[A-Za-z0-9_]{22}", "github" + "_pat_" + MADE_UP[:82]),
    _shape(
        "gitlab_token",
        "GitLab",
        r"gl(?:pat|dt|rt|cbt|ptt|oas|soat|ft|imt|agent|ffct)-[A-Za-z0-9_-]{20}",
        "gl" + "pat-" + MADE_UP[:20],
    ),
    _shape("bitbucket_token", "Bitbucket", r"ATBB[A-Za-z0-9]{32}", "AT" + "BB" + MADE_UP[:32]),
    _shape("atlassian_token", "Atlassian", r"ATATT3[A-Za-z0-9_=-]{30}", "AT" + "ATT3" + MADE_UP[:60]),
    _shape("npm_token", "npm", r"npm_(?<![A-Za-z0-9]....)[A-Za-z0-9]{36}", "np" + "m_" + MADE_UP[:36]),
    _shape("pypi_token", "PyPI", r"pypi-AgE[A-Za-z0-9_-]{30}", "py" + "pi-AgEIcHlwaS5vcmc" + MADE_UP[:60]),
    # Vendors of models
    _shape(
        "anthropic_key",
        "Anthropic",
        r"sk-ant-(?<![A-Za-z0-9].......)[A-Za-z0-9_-]{20}",
        "sk-" + "ant-" + MADE_UP[:30],
    ),
    _shape(
        "anthropic_key",
        "Anthropic",
        r"sk-ant-[a-z]{3,5}[0-9]{2}-[A-Za-z0-9_-]{20}",
        "sk-" + "ant-api03-" + MADE_UP[:40],
    ),
    _shape(
        "openai_key", "OpenAI and its likes", r"sk-(?<![A-Za-z0-9]...)[A-Za-z0-9]{20}", "sk-" + MADE_UP[:48]
    ),
    _shape(
        "openai_key",
        "OpenAI",
        r"sk-(?<![A-Za-z0-9]...)(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20}",
        "sk-" + "proj-" + MADE_UP[:40],
    ),
    # "OpenAI" in base64 stands inside the key
    _shape(
        "openai_key", "OpenAI", r"T3BlbkFJ[A-Za-z0-9_-]{20}", MADE_UP[:20] + "T3Blbk" + "FJ" + MADE_UP[20:40]
    ),
    _shape("openrouter_key", "OpenRouter", r"sk-or-v1-[0-9a-f]{40}", "sk-" + "or-v1-" + _HEX),
    _shape("xai_key", "xAI", r"xai-(?<![A-Za-z0-9]....)[A-Za-z0-9]{40}", "xa" + "i-" + MADE_UP[:80]),
    _shape("groq_key", "Groq", r"gsk_(?<![A-Za-z0-9]....)[A-Za-z0-9]{40}", "gs" + "k_" + MADE_UP[:52]),
    _shape("perplexity_key", "Perplexity", r"pplx-[A-Za-z0-9]{40}", "pp" + "lx-" + MADE_UP[:48]),
    _shape(
        "huggingface_token",
        "Hugging Face",
        r"hf_(?<![A-Za-z0-9]...)[A-Za-z0-9]{34}",
        "h" + "f_" + MADE_UP[:34],
    ),
    _shape(
        "replicate_token", "Replicate", r"r8_(?<![A-Za-z0-9]...)[A-Za-z0-9]{37}", "r" + "8_" + MADE_UP[:37]
    ),
    # Chats, payments, webhooks
    _shape("slack_token", "Slack", r"xox[abeoprs]-[A-Za-z0-9-]{10}", "xo" + "xp-" + MADE_UP[:24], None),
    _shape(
        "slack_token",
        "Slack",
        r"xox[abeoprs]-(?:[0-9]-)?[0-9]{8}",
        "xo" + "xb-123456789012-1234567890123-" + MADE_UP[:24],
        0,
    ),
    _shape(
        "slack_token",
        "Slack",
        r"xapp-[0-9]-[A-Z0-9]{8,12}-[0-9]{8}",
        "xa" + "pp-1-A012ABCDEFG-1234567890123-" + _HEX,
        0,
    ),
    _shape(
        "slack_webhook",
        "Slack",
        r"hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{16}",
        "https://hooks.slack" + ".com/services/T012ABCDE/B012ABCDE/" + MADE_UP[:24],
    ),
    _shape(
        "telegram_token",
        "Telegram",
        r":AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{33}",
        "1234567890" + ":AA" + MADE_UP[:33],
    ),
    _shape(
        "telegram_token",
        "Telegram",
        r":(?<=[0-9]{8}:)[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
        "123456789" + ":" + MADE_UP[:35],
    ),
    _shape(
        "stripe_key",
        "Stripe",
        r"k_(?:live|test)_(?<=[rs]k_.{5})(?<![A-Za-z0-9].{8})[A-Za-z0-9]{16}",
        "sk" + "_live_" + MADE_UP[:24],
    ),
    _shape(
        "webhook_secret",
        "Stripe, Standard Webhooks, this governor",
        r"wh(?:sec|sk)_[A-Za-z0-9+/_-]{24}",
        "wh" + "sec_" + MADE_UP[:32],
    ),
    # Forms that many use
    # RFC 7515, 7.1. It begins at the joint, of which there are few, not at the header, which may repeat.
    _shape(
        "jwt",
        "JSON Web Token",
        r"\.eyJ(?<=[A-Za-z0-9_-]{8}\.eyJ)[A-Za-z0-9_-]{5,10000}+\.[A-Za-z0-9_-]{8}",
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0In0." + MADE_UP[:43],
        0,
    ),
    # RFC 7468, 10 and 11, and the likes of OpenSSH and PGP
    _shape(
        "private_key",
        "PEM, OpenSSH, PGP",
        r"-----BEGIN[A-Z0-9 ]{0,20}PRIVATE ?KEY",
        "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
        0,
    ),
    _shape(
        "private_key", "age", r"AGE-SECRET-KEY-1[A-Z0-9]{40}", "AGE-SECRET" + "-KEY-1" + _CAPITALS[:58], 0
    ),
    # RFC 3986, 3.2.1: user:password before the host. What begins with a bracket is a place-holder.
    _shape(
        "connection_string",
        "any URL with a password",
        r"://(?<=[A-Za-z0-9]://)[^\s:/@]{0,64}:(?![<{\[$*])[^\s/@]{1,128}@[A-Za-z0-9\[]",
        "postgres://governor:" + "hunter2@db.internal:5432/bridge",
        None,
    ),
    _shape(
        "connection_string",
        "ADO.NET, ODBC",
        r"; ?(?:Password|Pwd|PWD) ?= ?(?![<{\[$*])[^\s;]{4}",
        "Server=db;User Id=eva;Pass" + "word=hunter2;",
        None,
    ),
    _shape(
        "pin",
        "a PIN announced as such",
        r"(?<!\w)(?:(?i:pin)(?i:[ -](?:code|number|nummer))?(?i: (?:is|est|ist|lautet):?| ?[:=])|PIN)"
        r" ?[\"'`]?[0-9](?: ?[0-9]){3,7}(?![0-9]|[.:/-][0-9])",
        "PIN: " + "4711",
        None,
    ),
)
"""Every shape that is searched for. SECURITY.md's table is drawn from it."""
