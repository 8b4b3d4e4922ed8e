"""What is done to a message before it is read, as far as it is worth a warning."""

SIGNALS: dict[str, str] = {
    "ansi": "terminal sequences (colours, cursor, titles, clipboard) are taken out",
    "tag": "invisible copies of ASCII in the tags block are taken out",
    "zero_width": "characters without a width are taken out",
    "bidi": "characters that turn the direction of writing are taken out",
    "variation": "variation selectors are taken out; every coloured emoji has one",
    "control": "control, private and unassigned characters are taken out",
    "html_comment": "closed HTML comments become a space",
    "chat_token": "control tokens of chat templates are broken by a space",
}
"""What normalisation counts when it takes it out or breaks it: the signal, and what is done."""
