"""``glasses serve``: the page of a study at an address of this machine, until Ctrl-C.

The token of the address and the port are kept in a file beside the cache that only this user can read, so that a page that is
open goes on by itself when the server is started again. Without a cache folder both are new each time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from types import FrameType

import uvicorn

from glasses.page.app import make_app
from glasses.page.live import Live
from glasses.page.served import Served
from glasses.runtime.cache import cache_folder, read, write

_GRACE = 1  # seconds for requests under way when the server ends


def serve(path: Path, *, host: str, port: int | None, token: str | None, browser: bool) -> int:
    """Serve until interrupted; an exit status."""
    if port is not None and not 0 <= port < 65536:
        raise ValueError(f"--port must be a number from 0 to 65535, got {port}.")
    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,200}", token):
        raise ValueError("--token must be at least 16 letters, digits, - or _: leave it out to have one drawn.")
    served = Served(path)
    try:
        kept = _kept(path)
        secret = token or str(kept.get("token") or secrets.token_urlsafe(24))
        listening = _listen(host, port, kept.get("port"))
        number = listening.getsockname()[1]
        _keep(path, {"token": secret, "port": number})
        address = f"http://{_shown(host)}:{number}/?token={secret}"
        print(f"The page of {path.name} is at {address}\nCtrl-C ends it; what was told is kept.", flush=True)
        if host not in ("127.0.0.1", "localhost", "::1"):
            print("Other machines can reach it without encryption: only in a network that you trust.", flush=True)
        app = make_app(served, token=secret, host=host, port=number)
        live: Live = app.state.live
        server = _Server(
            uvicorn.Config(
                app, log_level="error", access_log=False, timeout_graceful_shutdown=_GRACE, server_header=False, lifespan="on"
            ),
            live,
        )
        asyncio.run(_run(server, listening, live, address if browser else None))
    finally:
        served.close()
    return 1 if not server.started else 0


async def _run(server: _Server, listening: socket.socket, live: Live, address: str | None) -> None:
    async def open_browser() -> None:
        while not server.started:
            await asyncio.sleep(0.02)
        if address is not None:
            await asyncio.to_thread(webbrowser.open, address)

    opening = asyncio.create_task(open_browser())
    try:
        await server.serve(sockets=[listening])
    finally:
        opening.cancel()
        if live.thinking.busy or live.served.decisions:  # a computation cannot be interrupted; nothing of it is stored
            print("", flush=True)
            sys.stderr.flush()
            os._exit(130)


class _Server(uvicorn.Server):
    """Ends the streams of events as soon as it is told to end, which would else hold it up."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self.live = live

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.live.end()
        super().handle_exit(sig, frame)


def _listen(host: str, port: int | None, before: object) -> socket.socket:
    """A socket at that address; the port of last time where none is asked for and it is free."""
    wanted = [port] if port is not None else [before, 0] if isinstance(before, int) else [0]
    failure: OSError | None = None
    for each in wanted:
        try:
            family = socket.getaddrinfo(host, each, type=socket.SOCK_STREAM)[0][0]
            found = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise ValueError(f"--host {host!r} is no address of this machine: 127.0.0.1 is for this machine alone.") from error
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((host, each))
            found.listen(128)
            return found
        except OSError as error:
            found.close()
            failure = error
    assert failure is not None
    words = "--port 0 takes a free one" if port else "is it an address of this machine?"
    raise ValueError(f"Cannot listen on {host}, port {port or 0} ({failure.strerror}): {words}.")


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _kept(path: Path) -> dict[str, object]:
    file = _file(path)
    payload = None if file is None else read(file)
    with suppress(ValueError):
        found = json.loads(payload or b"{}")
        if isinstance(found, dict) and isinstance(found.get("token"), str):
            return found
    return {}


def _keep(path: Path, found: dict[str, object]) -> None:
    file = _file(path)
    if file is not None:
        write(file, json.dumps(found).encode())  # 0600, in a folder that nobody else can write


def _file(path: Path) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / "tokens" / hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
