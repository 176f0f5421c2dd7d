"""The stand-in model: a small Messages API on 127.0.0.1, for the real CLI without key or network.

    with OfflineModel(lambda request: [Text("Hello.")]) as model:
        options = ClaudeAgentOptions(env=offline_env(model.url, home))

A script turns each request into a reply: a list of steps, streamed in the form of the real API.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from types import TracebackType

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from smartwriter.agent.offline.script import ApiError, Reply, Request, Script, Text
from smartwriter.agent.offline.stand_in import BANNER, stand_in
from smartwriter.agent.offline.streaming import ApiEvent, Streaming, as_message, as_stream, error_body, tokens

START_TIMEOUT_S = 10.0


class OfflineModel:
    """The server, running in a thread of its own while the context is open.

    Opening and closing block for about 0.1 s, so neither belongs on an event loop.
    The script runs on the server's event loop: it sees requests one by one, in order of arrival,
    and must not block; a reply to be held back says so with `Wait`. What it raises becomes the
    reply's error.
    """

    url: str  # known once the context is open

    def __init__(self, script: Script | None = None) -> None:
        self.requests: list[Request] = []  # of the conversation, each before its reply begins
        self.side_requests: list[Request] = []  # the CLI's own: titles, probes, token counts
        self.script = script or stand_in  # may be exchanged while running
        self.sent: Callable[[ApiEvent], None] = lambda _: None  # is told of each event of a reply, once sent
        self._stopping = threading.Event()

    def __enter__(self) -> OfflineModel:
        app = Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/api/hello", _hello, methods=["GET", "HEAD"]),
            ],
            exception_handlers={404: _not_found},
        )
        config = uvicorn.Config(
            app,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            # The CLI keeps its connections; one closed under it would look like a fault.
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=2,
        )
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="offline-model", daemon=True
        )
        # The web face may log through the same logger from its own thread, so only ours is dropped.
        logging.getLogger("uvicorn.error").addFilter(self._logged_elsewhere)
        self._thread.start()
        if not self._server.ready.wait(START_TIMEOUT_S):
            self.__exit__(None, None, None)
            raise RuntimeError("the offline model did not start")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
        logging.getLogger("uvicorn.error").removeFilter(self._logged_elsewhere)

    def _logged_elsewhere(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread.ident

    async def _messages(self, http: HttpRequest) -> Response:
        request = Request(await http.json())
        if _is_side_request(request):
            self.side_requests.append(request)
            reply = _side_reply(request)
        else:
            self.requests.append(request)
            try:
                reply = self.script(request)
            except Exception as error:
                reply = [ApiError(400, "invalid_request_error", f"The script failed: {error!r}")]
        streams = request.body.get("stream", False)
        for step in reply[:1] if streams else reply:
            if isinstance(step, ApiError):
                return _http_error(step)
        events = self._told(Streaming(request, self._stopping).events(reply))
        if streams:
            return StreamingResponse(as_stream(events), media_type="text/event-stream")
        return StreamingResponse(as_message(events), media_type="application/json")

    async def _told(self, events: AsyncIterator[ApiEvent]) -> AsyncIterator[ApiEvent]:
        async for event in events:
            yield event
            self.sent(event)  # for the next one is asked for

    async def _count_tokens(self, http: HttpRequest) -> Response:
        request = Request(await http.json())
        self.side_requests.append(request)
        return JSONResponse({"input_tokens": tokens(request.body)})


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def _is_side_request(request: Request) -> bool:
    # The conversation carries tools or thinking, or both; the CLI's side calls carry neither.
    body = request.body
    return not (body.get("tools") or body.get("thinking")) or body.get("max_tokens") == 1


def _side_reply(request: Request) -> Reply:
    wants_json = "format" in request.body.get("output_config", {})
    return [Text(json.dumps({"title": "Offline"}) if wants_json else BANNER)]


def _http_error(error: ApiError) -> Response:
    headers = {"request-id": f"req_{uuid.uuid4().hex[:24]}"}
    if error.retry_after_s is not None:
        headers["retry-after"] = f"{error.retry_after_s:g}"
    return JSONResponse(error_body(error), error.status, headers)


async def _hello(_: HttpRequest) -> Response:
    return Response()


async def _not_found(http: HttpRequest, _: Exception) -> Response:
    return _http_error(ApiError(404, "not_found_error", f"There is no {http.url.path} here."))
