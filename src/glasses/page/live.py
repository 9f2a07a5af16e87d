"""Server-sent events: every page that is open learns of a change within a second, wherever it was made.

While at least one page is open, a cheap fingerprint of the study is compared several times per second. Of a change, the head
of the page and the rows that differ are sent; the model's numbers when they are there. A page says which version it has, so
that one that was cut off, or whose server was started again, is sent what it missed and no more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool

from glasses.page.served import Served
from glasses.page.state import fingerprint, page_state
from glasses.page.thinking import Thinking
from glasses.study.storage import UnreachableError

_LOOK = 0.2  # seconds
_SIGN = 10.0  # seconds between two signs of life on a quiet stream
_BEHIND = 100  # events that a page may be behind; one that is slower is cut off and comes again


class Live:
    """The state as it was sent last, and the pages that listen."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.thinking = Thinking(served, self._model_said)
        self.state: dict[str, Any] = {}
        self.trouble: str | None = None  # with the database
        self._fingerprint = ""
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Within the event loop that serves."""
        self._loop = asyncio.get_running_loop()
        await run_in_threadpool(self.thinking.recall)
        self.thinking.start()
        await self.look()
        self._watching = asyncio.create_task(self._watch())

    def end(self) -> None:
        """End every stream."""
        self.served.ending.set()
        for queue in self._listeners:
            _put(queue, None)

    async def look(self) -> dict[str, Any]:
        """The state as it is now; the pages are told if it has changed."""
        async with self._looking:
            trouble, new = await run_in_threadpool(self._seen)
            if trouble != self.trouble:
                self.trouble = trouble
                self._tell("trouble", {"words": trouble})
            if new is not None and new["version"] != self.state.get("version"):
                before = self.state.get("rows", {})
                rows = {number: row for number, row in new["rows"].items() if before.get(number) != row}
                self.state = new
                self._tell("state", {"version": new["version"], "head": new["head"], "rows": rows, "whole": False})
            if new is not None:
                self.thinking.changed()
            return self.state

    def _seen(self) -> tuple[str | None, dict[str, Any] | None]:
        """What is in the way, if anything, and the state if it may have changed."""
        try:
            self.served.refresh()
            stored = self.served.reader
            found = fingerprint(stored) + repr(stored.file)
            if found == self._fingerprint:
                return self.served.trouble, None
            state = page_state(stored)
            state["head"]["budget_line"] = self.served.budget_line
            self._fingerprint = found
            return self.served.trouble, state
        except UnreachableError as error:
            return str(error), None

    async def _watch(self) -> None:
        while not self.served.ending.is_set():
            await asyncio.sleep(_LOOK)
            if self._listeners:
                await self.look()

    async def events(self, version: str, model: str) -> AsyncIterator[str]:
        """The stream of one page that has the state ``version`` and the model's numbers ``model``."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(_BEHIND)
        self._listeners.add(queue)
        try:
            yield "retry: 500\n\n"
            if self.state.get("version") != version:
                yield event("state", {**self.state, "whole": True})
            if self.thinking.found.get("key") != model or self.thinking.found["state"] != "ready":
                yield event("model", self.thinking.found)
            yield event("trouble", {"words": self.trouble})
            while not self.served.ending.is_set():
                try:
                    sent = await asyncio.wait_for(queue.get(), _SIGN)
                except TimeoutError:
                    sent = ": still here\n\n"
                if sent is None:
                    return
                yield sent
        finally:
            self._listeners.discard(queue)

    def _model_said(self, found: dict[str, Any]) -> None:
        """Called on the model's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, "model", found)

    def _tell(self, name: str, data: dict[str, Any]) -> None:
        text = event(name, data)
        for queue in self._listeners:
            _put(queue, text)


def event(name: str, data: dict[str, Any]) -> str:
    """One event of a stream; JSON has no line breaks of its own."""
    return f"event: {name}\ndata: {json.dumps(data, default=str)}\n\n"


def _put(queue: asyncio.Queue[str | None], text: str | None) -> None:
    if queue.full():
        while not queue.empty():
            queue.get_nowait()
        text = None
    queue.put_nowait(text)
