"""A web server for tests that hands out one file, with Range, and can be told to misbehave."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

_CUT_AT = 0.5


class FileServer:
    """Serves `content` on a free loopback port. `ranges` notes what each request asked for.

    Behaviours: "good"; "no_range" (gives the whole file, whatever is asked); "cut" (declares all, sends
    half, hangs up); "unsized_cut" (declares nothing, sends half); "shifted" (another part than asked);
    "redirect" (to the file elsewhere); "loop" (to itself for ever); a number (that status).
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.behaviour: str | int = "good"
        self.ranges: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/model.gguf"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        behaviour, asked = self.behaviour, request.headers.get("range")
        self.ranges.append(asked)
        if isinstance(behaviour, int):
            self._send(request, behaviour, b"sorry")
        elif behaviour == "loop" or (behaviour == "redirect" and request.path != "/elsewhere"):
            request.send_response(302)
            request.send_header("Location", "/model.gguf" if behaviour == "loop" else "/elsewhere")
            request.send_header("Content-Length", "0")
            request.end_headers()
        elif asked and behaviour != "no_range":
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
            shown = begin + 1 if behaviour == "shifted" else begin
            self._send(request, 206, self.content[begin:], shown)
        else:
            self._send(request, 200, self.content)

    def _send(
        self, request: BaseHTTPRequestHandler, status: int, body: bytes, begin: int | None = None
    ) -> None:
        request.send_response(status)
        if begin is not None:
            request.send_header("Content-Range", f"bytes {begin}-{len(self.content) - 1}/{len(self.content)}")
        if self.behaviour != "unsized_cut":
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        cut = self.behaviour in ("cut", "unsized_cut")
        request.wfile.write(body[: int(len(body) * _CUT_AT)] if cut else body)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
