"""The closed lists of words by which values are known: endings, domains, units, months.

Data only. Each is an alternation for a regular expression; none holds a repeat.
"""

FILE_ENDINGS = (
    "py pyi ipynb md rst txt toml json jsonl yaml yml ini cfg conf lock env js jsx mjs cjs ts tsx css scss html "
    "xml svg csv tsv sql sh bash zsh ps1 bat rb rs go c h cc cpp hpp java kt swift php pl lua r ex exs scala clj "
    "hs ml dart vue tf proto log pdf png jpg jpeg gif webp mp3 mp4 zip tar gz tgz bz2 xz whl deb rpm dmg exe dll "
    "so db sqlite plist service pem key crt diff patch gguf docx xlsx pptx odt"
).replace(" ", "|")

BUILD_FILES = "Makefile|Dockerfile|Justfile|Procfile"

DOT_FILES = "env|gitignore|gitattributes|github|dockerignore|editorconfig|bashrc|zshrc|npmrc|venv|ssh|config"

FOLDERS = (
    "src|lib|libs|tests?|docs?|bin|etc|apps?|pkg|cmd|internal|scripts?|packages|origin|upstream|feature|fix|bugfix"
    "|hotfix|release|refs"
)

DOMAINS = (
    "com org net edu gov io dev ai info biz eu uk de fr nl ch ru cn ua cz dk fi hu jp kr nz za br mx tv cc gg ly "
    "xyz top site online website icu vip onion example invalid"
).replace(" ", "|")
"""Last labels that make an address of a name even when nothing follows."""

LATER_DOMAINS = (
    "co me app to in it is be at us so no se es pt pl ca au ws tk cf ga gq am fm sh zip mov page live pro run host "
    "fun work world today news download rocks digital agency services solutions local internal cloud tech store "
    "space club zone link click"
).replace(" ", "|")
"""Last labels that are words or file endings too: an address only with a port, a path or a query."""

MONTHS = (
    "(?:Jan(?:uary?|uar)?|Feb(?:ruary?|ruar)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    "|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?"
    "|janvier|f\u00e9vrier|mars|avril|mai|juin|juillet|ao\u00fbt|septembre|octobre|novembre|d\u00e9cembre"
    "|M\u00e4rz|Mai|Juni|Juli|Oktober|Dezember)"
)

TIME_UNITS = (
    "ns|us|\u03bcs|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|months?|years?"
    "|milliseconds?|microseconds?"
    "|secondes?|heures?|jours?|semaines?|mois|ans?|ann\u00e9es?"
    "|Sekunden?|Minuten?|Stunden?|Tagen?|Tage?|Wochen?|Monaten?|Monate?|Jahren?|Jahre?"
)

UNITS = (
    "%|(?:[kKMGTP]?i?[Bb]|[kMGT]?bit|[kKMGTP]i?o|[kMG]bps|bps)(?:/s)?|bytes?|octets?|[kMG]?Hz|fps|rpm|px|pt|em|rem"
    "|mm|cm|km|kg|g|[mk]?[VWA]|\u00b0?[CF]|x|req/s|qps|rps|tok/s"
)

MONEY = "[$\u20ac\u00a3\u00a5]"
CURRENCIES = "USD|EUR|GBP|CHF|JPY|CAD|AUD|dollars?|euros?"

THINGS = (
    "percent|files?|lines?|rows?|columns?|tests?|users?|requests?|errors?|warnings?|failures?|tokens?|commits?|items?"
    "|characters?|chars?|words?|messages?|retries|attempts?|times|cores?|threads?|workers?|nodes?"
    "|pour cent|fichiers?|lignes?|colonnes?|utilisateurs?|requ\u00eates?|erreurs?|avertissements?|\u00e9checs?"
    "|tentatives?|jetons?|fois|c\u0153urs?|n\u0153uds?"
)

NUMBER_WORDS: dict[str, int] = {
    word: number
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "z\u00e9ro un deux trois quatre cinq six sept huit neuf dix onze douze",
        "null eins zwei drei vier f\u00fcnf sechs sieben acht neun zehn elf zw\u00f6lf",
    )
    for number, word in enumerate(words.split())
} | {"une": 1, "ein": 1, "eine": 1}
"""Numbers that a retelling may fairly write in digits."""
