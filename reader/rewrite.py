"""The whole of a read: from the job to the rewrite, with one question to the model on the way."""

import unicodedata
from collections.abc import Callable

from reader.checks import CHECKS, SHOWN_CHECKS, Case, first_failure
from reader.contract import WORDS, Draft, Job, Kind, Mode, Rewrite, parse_draft, prose_limit
from reader.errors import DroppedError
from reader.normalise import normalise
from reader.prompt import SCHEMA, question
from reader.strict_json import read_object
from reader.values import find_values, listed, shown

_FENCE, _FENCE_END = "```json\n", "\n```"


def rewrite(job: Job, ask: Callable[[str], str]) -> Rewrite:
    """Read one message; `ask` puts the user turn to the model and returns its text.

    Raises DroppedError, or whatever `ask` raises.
    """
    source = normalise(job.text)
    values = listed(source.text, WORDS[job.mode], job.url_hosts)
    if job.mode is Mode.VALUES:
        return Rewrite(Kind.UNREAD, "", (), (), values, source.signals)
    draft = read_draft(ask(question(source.text, job.nonce)), job.nonce)
    _refuse(first_failure(CHECKS, Case(draft, source.text, job.nonce, job.copy_limit, job.url_hosts)))
    draft = _as_shown(draft, job)
    _refuse(first_failure(SHOWN_CHECKS, Case(draft, source.text, job.nonce, job.copy_limit, job.url_hosts)))
    if not 0 < sum(map(len, draft.texts())) <= prose_limit(len(job.text)):
        raise DroppedError("contract")
    return Rewrite(*draft, values, source.signals)


def read_draft(answer: str, nonce: str) -> Draft:
    """Return the model's answer as a draft with each text on one line, folded to NFKC.

    The answer is one JSON object; around it white space or one `json` fence, which servers without
    structured output let through, and nothing else. Raises DroppedError (`contract`, `nonce`).
    """
    answer = answer.strip()
    if answer.startswith(_FENCE) and answer.endswith(_FENCE_END):
        answer = answer[len(_FENCE) : -len(_FENCE_END)]
    fields = read_object(answer)
    if fields is None or fields.keys() != SCHEMA["properties"].keys():
        raise DroppedError("contract")
    if fields["nonce"] != nonce:
        raise DroppedError("nonce")
    draft = parse_draft(fields)
    if draft is None or draft.kind is Kind.UNREAD:
        raise DroppedError("contract")
    return _each(draft, lambda text: " ".join(unicodedata.normalize("NFKC", text).split()))


def _as_shown(draft: Draft, job: Job) -> Draft:
    """Bound the values in the prose as those beside it, and defang addresses."""

    def bounded(text: str) -> str:
        for found in reversed(find_values(text)):
            value = shown(found.value, WORDS[job.mode], job.url_hosts)
            text = text[: found.start] + value.text + text[found.end :]
        return text

    return _each(draft, bounded)


def _each(draft: Draft, change: Callable[[str], str]) -> Draft:
    """Change every piece of prose; items of which nothing is left fall away."""
    points, wants = (tuple(filter(None, map(change, items))) for items in (draft.points, draft.wants))
    return Draft(draft.kind, change(draft.summary), points, wants)


def _refuse(code: str | None) -> None:
    if code is not None:
        raise DroppedError(code)
