"""What a retelling never looks like: markup, turns of a chat, our own frame, orders. One row a form.

Every pattern is searched for in one line of prose and takes time linear in it: each repeat is bounded.
Letters are compared without regard to case.
"""

import re
from typing import NamedTuple

from reader.normalise import CHAT_TOKEN, TURNS

_START = r"(?:^|[.!?;:,\"'(\-] ?)"
_WHO = (
    "system|governor|operator|administrator|admin|developer|assistant|security|human|user|tool"
    "|syst\u00e8me|gouverneur|op\u00e9rateur|administrateur|d\u00e9veloppeur|s\u00e9curit\u00e9|utilisateur|outil"
)
_SPEAKERS = "human|assistant|user|system|developer|tool|humain|utilisateur|syst\u00e8me|d\u00e9veloppeur|outil|benutzer|usuario|sistema"
_NOTES = "message|notes?|notice|notification|reminder|alert|override|prompt|instructions?"
_NOTES_FR = "message|notes?|avis|notification|rappel|alerte|consignes?|instructions?"
_FOLLOWS = r"\b[^.!?]{0,60}?\b"


class Form(NamedTuple):
    """One form: the code of its drop, what it is, and how it is found."""

    code: str
    what: str
    pattern: str


FORMS: tuple[Form, ...] = (
    Form("markup", "an HTML tag or comment", r"<[/!?a-z]"),
    Form("markup", "an HTML character reference", r"&(?:lt|gt|amp|quot|nbsp|#\d{1,7}|#x[0-9a-f]{1,6});"),
    Form("markup", "a Markdown image", r"!\["),
    Form("markup", "a Markdown link", r"\] ?\(|\]\["),
    Form("markup", "a Markdown reference", r"^\[[^\]]{1,100}\]:"),
    Form("markup", "a wiki link", r"\[\["),
    Form("markup", "a bulletin-board tag", r"\[/?(?:url|img|link|code|quote)[=\]]"),
    Form("markup", "a code fence", r"```|~~~"),
    Form("markup", "an address that is a program", r"(?:javascript|vbscript):\S|data:[a-z]{1,20}/"),
    Form("markup", "a TeX command that fetches or writes", r"\\(?:href|url|includegraphics|input|write18)\b"),
    Form("chat_syntax", "a control token, whole", CHAT_TOKEN.pattern + r"|<\||\|>"),
    Form(
        "chat_syntax",
        "a control token, broken",
        rf"< /?(?:{TURNS})>|\[ /?(?:inst|system_prompt|tool_calls)\]|< </?sys>",
    ),
    Form("chat_syntax", "the label of a speaker", rf"(?:^|[.!?;] ?)(?:{_SPEAKERS}) ?:"),
    Form(
        "chat_syntax",
        "the heading of an instruction",
        r"### ?(?:instruction|system|response|human|assistant|user)",
    ),
    Form("chat_syntax", "an object in braces, as a tool is called", r"\{ ?[\"'][\w\-]{1,60}[\"'] ?:"),
    Form(
        "chat_syntax",
        "a field of a tool call",
        r"[\"'](?:tool_calls?|tool_use|tool_name|tool_input|tool_choice|function_call|arguments|recipient_name|role)[\"'] ?:",
    ),
    Form("chat_syntax", "a role", r"\brole ?[:=] ?[\"']?(?:system|user|assistant|developer|tool)\b"),
    Form(
        "chat_syntax",
        "a tool call in words",
        r"\bantml:|\bfunction_calls\b|\bto=functions\.|\bfunctions\.[a-z_]{1,60}\(|\baction input ?:",
    ),
    Form("imitation", "a name of authority in brackets", rf"\[ ?(?:{_WHO})\b"),
    Form("imitation", "the heading of a system note", rf"{_START}(?:{_WHO}) (?:{_NOTES}) ?[:\-]"),
    Form(
        "imitation",
        "the heading of a system note, in French",
        rf"{_START}(?:{_NOTES_FR}) (?:du |de la |de l')?(?:{_WHO}) ?[:\-]",
    ),
    Form("imitation", "a reminder of the system", r"system[-_ ]reminder"),
    Form(
        "imitation",
        "the governor's frame",
        r"end of (?:the )?message\b|fin du message\b|content from another agent|no model read this|governor send --"
        r"|^(?:conversation|in reply to|answer wanted by) ?:|\| ?(?:kind|summary|points|wants|values) ?:",
    ),
    Form(
        "imitation",
        "an end or a beginning, announced",
        r"\b(?:begin|end)(?:ning)? (?:of )?(?:the |all )?(?:un)?(?:trusted|quoted|signed|system|external)\b",
    ),
    Form("imitation", "a ruled line", r"[=\-_*~#]{5}"),
)
"""Forms for which every piece of prose is searched."""

ORDERS: tuple[Form, ...] = (
    Form(
        "order_to_agent",
        "what you must do",
        r"\byou(?:'ll| (?:must|should|shall|will|ought to|have to|need to"
        r"|are (?:now|to|required|instructed|allowed|authori[sz]ed|permitted)))\b",
    ),
    Form(
        "order_to_agent",
        "what you must do, in French",
        r"\b(?:vous (?:devez|devrez|allez|\u00eates (?:maintenant|d\u00e9sormais|pri\u00e9s? de))"
        r"|tu (?:dois|devras|vas|es (?:maintenant|d\u00e9sormais))|il faut que (?:tu|vous)|veuillez)\b",
    ),
    Form(
        "order_to_agent",
        "what you must do, in German and Spanish",
        r"\b(?:du (?:musst|sollst|wirst)|sie m\u00fcssen|sie sollen|du bist (?:jetzt|nun|ab)|debes|tienes que|usted debe"
        r"|ahora eres|eres ahora)\b",
    ),
    Form(
        "order_to_agent",
        "your instructions",
        r"\byour (?:new |only |real |previous )?(?:instructions?|system prompt|rules?|guidelines|role|goal|objective)\b"
        r"|\b(?:vos|tes) (?:instructions|consignes|r\u00e8gles)\b|\bdeine anweisungen\b|\btus instrucciones\b",
    ),
    Form(
        "order_to_agent",
        "your reply",
        r"\b(?:in|of|from|with|begin|start|end|format|write) your (?:next |final )?(?:reply|response|answer|output)\b",
    ),
    Form(
        "order_to_agent",
        "silence",
        rf"{_START}(?:please )?(?:do not|don't|never) (?:tell|inform|mention|reveal|notify|ask|report|warn)\b"
        r"|\bne (?:dis|dites|mentionnez?|r\u00e9v\u00e8le|r\u00e9v\u00e9lez|pr\u00e9viens|pr\u00e9venez|parlez?)\b",
    ),
    Form(
        "order_to_agent",
        "a text to be written",
        rf"{_START}(?:please |now |then |and |just )?(?:(?:reply|respond|answer) (?:only|with|as)"
        r"|(?:print|output|say|write|repeat|echo|recite) (?:the (?:words?|text|phrase|following|string|sentence)"
        r"|exactly|only|back|verbatim|everything|after me))\b"
        rf"|{_START}(?:r\u00e9ponds|r\u00e9pondez|r\u00e9p\u00e8te|r\u00e9p\u00e9tez|affiche|affichez) (?:uniquement|seulement|par|exactement|le texte)\b",
    ),
    Form(
        "order_to_agent",
        "a part to be played",
        rf"{_START}(?:please |now )?(?:pretend|act as|roleplay|role-play|behave (?:as|like))\b|{_START}(?:agis|agissez) comme\b",
    ),
)
"""Orders to whoever reads the retelling, wherever it tells and does not ask: not searched for in `wants`."""

OVERRIDES: tuple[Form, ...] = (
    Form(
        "order_to_agent",
        "rules to be ignored",
        rf"{_START}(?:please )?(?:now )?(?:ignore|disregard|forget|override|bypass|discard)"
        rf" (?:all|any|every|everything|the|your|these|those|previous|prior|above|earlier){_FOLLOWS}"
        r"(?:instructions?|rules?|prompts?|guidelines|polic(?:y|ies)|directions|directives|safety|restrictions|context)\b",
    ),
    Form(
        "order_to_agent",
        "rules to be ignored, in French, German and Spanish",
        rf"{_START}(?:ignore[zr]?|oublie[zr]?|ignoriere|ignorieren|vergiss|vergessen|missachte|ignora|olvida|omite){_FOLLOWS}"
        r"(?:instructions|consignes|r\u00e8gles|directives|anweisungen|regeln|vorgaben|befehle|instrucciones|reglas)\b",
    ),
)
"""Orders that nobody may pass on, not even as what the sender wants."""


def found_by(forms: tuple[Form, ...], code: str) -> re.Pattern[str]:
    """Return the one pattern of all forms of a code."""
    return re.compile("|".join(form.pattern for form in forms if form.code == code), re.IGNORECASE)
