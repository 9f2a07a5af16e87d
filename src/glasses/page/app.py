"""The addresses of the page: what it shows, what it sends while it is open, and what a person does. Errors are one sentence."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from glasses.page.actions import Actions, Body, ConflictError
from glasses.page.live import Live
from glasses.page.report import HERE, TEMPLATES, report_from
from glasses.page.security import Guard, loads, write_secret
from glasses.page.served import Served, said_without_folders
from glasses.study import report
from glasses.study.storage import UnreachableError


def make_app(served: Served, *, token: str, host: str, port: int) -> Starlette:
    """The page of a served study, for whoever has the token."""
    return _Page(served, token).app([Middleware(Guard, token=token, host=host, port=port)])


class _Page:
    def __init__(self, served: Served, token: str) -> None:
        self.served, self.token = served, token
        self.live, self.actions = Live(served), Actions(served)

    def app(self, middleware: list[Middleware]) -> Starlette:
        actions = {
            "ask": self.actions.ask,
            "tell": self.actions.tell,
            "correct": self.actions.correct,
            "withdraw": self.actions.withdraw,
            "cancel": self.actions.cancel,
            "undo": self.actions.undo,
            "retry": self.actions.retry,
            "import/preview": self.actions.preview,
            "import/store": self.actions.store,
        }
        routes = [
            Route("/", self.page),
            Route("/api/state", self.state),
            Route("/api/events", self.events),
            Route("/api/forecast", self.forecast),
            Route("/api/history", self.history),
            Route("/export.csv", self.export_csv),
            Route("/export.json", self.export_json),
            Route("/report.html", self.report),
            *(Route(f"/api/{name}", self._post(action), methods=["POST"]) for name, action in actions.items()),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ]
        found = Starlette(
            routes=routes,
            middleware=middleware,
            lifespan=self._lifespan,
            exception_handlers={
                HTTPException: _not_here,
                ConflictError: self._refused,
                UnreachableError: self._refused,
                ValueError: self._refused,
            },
        )
        found.state.live = self.live
        return found

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        await self.live.start()
        yield
        self.live.end()

    async def page(self, request: Request) -> Response:
        state = await self.live.look()
        text = TEMPLATES.get_template("page.html").render(
            head=state["head"],
            data={"state": state, "model": self.live.thinking.found},
            secret=write_secret(self.token),
        )
        return HTMLResponse(text)

    async def state(self, request: Request) -> Response:
        return _json(await self.live.look())

    async def events(self, request: Request) -> Response:
        seen = request.query_params
        stream = self.live.events(seen.get("version", ""), seen.get("model", ""))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def forecast(self, request: Request) -> Response:
        text = request.query_params.get("budget", "")
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise ValueError(f"budget must be a whole number, got {text[:40]!r}.")
        found = await run_in_threadpool(self.live.thinking.what_if, int(text))
        return _json({**found, "edit": f"To change it for good, edit {self.served.budget_line}: budget = {int(text)}."})

    async def history(self, request: Request) -> Response:
        text = request.query_params.get("trial", "")
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise ValueError(f"trial must be a whole number, got {text[:40]!r}.")
        return _json({"trial": int(text), "entries": await run_in_threadpool(self.served.reader.history, int(text))})

    async def export_csv(self, request: Request) -> Response:
        rows = await run_in_threadpool(report.rows_of, self.served.reader)
        return _download(report.as_csv(rows), "text/csv; charset=utf-8", "results.csv")

    async def export_json(self, request: Request) -> Response:
        rows = await run_in_threadpool(report.rows_of, self.served.reader)
        return _download(report.as_json(rows) + "\n", "application/json", "results.json")

    async def report(self, request: Request) -> Response:
        model = self.live.thinking.found
        text = await run_in_threadpool(report_from, self.served.reader, model if model["state"] == "ready" else None)
        return _download(text, "text/html; charset=utf-8", "report.html")

    def _post(self, action: Callable[[Body], dict[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            body = loads(await request.body())
            answer = await run_in_threadpool(action, body)
            await self.live.look()  # every page knows before this one hears of its success
            return _json(answer)

        return endpoint

    async def _refused(self, request: Request, error: Exception) -> Response:
        words = said_without_folders(" ".join(str(error).split()), self.served.path)
        if isinstance(error, ConflictError):
            return JSONResponse({"error": words, "correct": error.trial}, 409)
        return JSONResponse({"error": words}, 503 if isinstance(error, UnreachableError) else 400)


async def _not_here(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    words = {404: "There is nothing at this address.", 405: "Expected GET to read or POST to write."}
    return JSONResponse({"error": words.get(status, "The request could not be read.")}, status)


def _json(found: Any) -> Response:
    return Response(json.dumps(found, default=str, allow_nan=False), media_type="application/json")


def _download(text: str, kind: str, name: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
