"""Which address is which view. A view says what it knows; here that becomes a page or its twin, or four parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from reslice.errors import Misused, Refused, ResliceError
from reslice.studio import compare_view, error_view, first_view, pages, run_view, series_view, status_view, target_view
from reslice.studio.jobs import Jobs
from reslice.studio.links import Links
from reslice.studio.standing import Words
from reslice.studio.values import Ask, View

if TYPE_CHECKING:
    from starlette.requests import Request

    from reslice.project import Project
    from reslice.studio.looking import Looking

Answer = Callable[[Ask], View | str]
"""What a page says; a text is the address where the answer is."""

PAGES: dict[str, Answer] = {
    "/": first_view.view,
    "/target/{target}": target_view.view,
    "/target/{target}/status/{job}": status_view.view,
    "/run/{run}": run_view.view,
    "/run/{run}/series": series_view.view,
    "/compare": compare_view.view,
}
"""Views by their address. Each has a twin beside it, with `.json` behind the address."""

TWINS: dict[str, Answer] = {"/target/{target}/status/{job}": status_view.twin}
"""Where the twin is another view: it leads nowhere else."""

ACTIONS: dict[str, Answer] = {
    "/target/{target}/status": status_view.start,
    "/target/{target}/status/{job}/cancel": status_view.cancel,
}
"""What begins or ends a comparison, which writes nothing."""


@dataclass(frozen=True, slots=True)
class Studio:
    """What every request is answered from.

    `name` is what the project is called, `place` leads to it in the commands of the pages, and `on_bug` says of an
    exception that nobody foresaw what a user is told.
    """

    looking: Looking
    name: str
    on_bug: Callable[[Exception], ResliceError]
    place: str = ""
    words: Words = field(default_factory=Words)
    jobs: Jobs = field(default_factory=Jobs)

    def listen_ahead(self) -> None:
        """Hear what the ledgers say before the first page is asked for, so that it is as quick as every other one."""
        try:
            with self.looking.project() as project, project.engine() as engine:
                for name in project.targets:
                    self.words.stands(engine, project.target(name).contract, None)
        except ResliceError:
            return  # the page that needs it says so

    def stop(self) -> None:
        """End what is at work."""
        self.jobs.stop()
        self.looking.stop()

    def answer(self, request: Request, answer: Answer, *, is_twin: bool) -> Response:
        """Return what a view says, as a page or as its twin; an error is a page as well."""
        root = f"{request.scope['root_path']}/"
        try:
            with self.looking.project() as project:
                found = answer(self._ask(project, root, request))
        except ResliceError as error:
            return self._refusal(error, Links(root), is_twin=is_twin)
        if isinstance(found, str):
            return RedirectResponse(found, 303)
        asked = f"?{request.url.query}" if request.url.query else ""
        return self._response(found, Links(root), request.url.path + asked, is_twin=is_twin)

    def bug(self, request: Request, error: Exception) -> Response:
        """Return what is said when the studio itself fails: no more than that, and where the details are."""
        return self._refusal(self.on_bug(error), Links(f"{request.scope['root_path']}/"), is_twin=False)

    def _ask(self, project: Project, root: str, request: Request) -> Ask:
        schemas = {project.target(name).contract.ledger.schema for name in project.targets}
        links = Links(root, names_ledger=len(schemas) > 1)
        query = {name: request.query_params.getlist(name)[0] for name in request.query_params}
        return Ask(project, links, self.place, request.path_params, query, self.words, self.jobs)

    def _refusal(self, error: ResliceError, links: Links, *, is_twin: bool) -> Response:
        response = self._response(error_view.view(error, self.place), links, links.root, is_twin=is_twin)
        response.status_code = _status_of(error)
        if response.status_code == 503:
            response.headers["Retry-After"] = str(error_view.AGAIN_SECONDS)
        return response

    def _response(self, view: View, links: Links, address: str, *, is_twin: bool) -> Response:
        if is_twin:
            return Response(pages.twin(view), media_type="application/json")
        return Response(pages.html(view, links, address, self.name), media_type="text/html")


def application(studio: Studio) -> Starlette:
    """Return the pages of a studio. Who may ask is not their business."""
    routes = [Route("/static/{name}", _static)]
    for path, answer in PAGES.items():
        twin = "/index.json" if path == "/" else f"{path}.json"
        routes += [Route(twin, _endpoint(studio, TWINS.get(path, answer), is_twin=True))]
        routes += [Route(path, _endpoint(studio, answer, is_twin=False))]
    routes += [Route(path, _action(studio, answer)) for path, answer in ACTIONS.items()]
    handlers: dict[Any, Any] = {404: _not_found, Exception: studio.bug}
    return Starlette(routes=routes, exception_handlers=handlers)


def _endpoint(studio: Studio, answer: Answer, *, is_twin: bool) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:
        return studio.answer(request, answer, is_twin=is_twin)

    return respond


def _action(studio: Studio, answer: Answer) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:
        if request.method == "HEAD":  # who only looks whether there is something begins and ends nothing
            return Response(status_code=405, headers={"Allow": "GET"})
        return studio.answer(request, answer, is_twin=False)

    return respond


def _status_of(error: ResliceError) -> int:
    """Return the code of an answer that is an error: not there, not understood, later, or not before it is mended."""
    if error.kind in ("run_unknown", "usage"):
        return 404
    if error.kind.startswith("range_"):
        return 400
    return 500 if isinstance(error, Misused | Refused) or error.kind == "internal" else 503


def _static(request: Request) -> Response:
    found = pages.STATIC.get(request.path_params["name"])
    return FileResponse(found[0], media_type=found[1]) if found else _not_found(request, None)


def _not_found(_request: Request, _error: Exception | None) -> Response:
    return PlainTextResponse("not found\n", 404)
