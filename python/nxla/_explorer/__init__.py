"""A page on which programs, stages and profiles can be explored; see `nxla.view`."""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
import webbrowser
from importlib.resources import files
from pathlib import Path

from nxla import _core, _hints
from nxla._explorer.model import (
    GROUPINGS,
    Model,
    expressions_of,
    grouping_of,
    spans_of_profile,
    spans_of_timeline,
)
from nxla._files import path_of
from nxla._values import as_list
from nxla.errors import ArgumentError, FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nxla._core import Expression, StageGraph, Timeline
    from nxla._explorer.model import Span

__all__ = ["View", "view"]

#: The scripts of the page, in order.
_SCRIPTS = ("layout.js", "canvas.js", "timeline.js", "page.js")


class View:
    """A page that `nxla.view` returned. A notebook displays it."""

    def __init__(self, html: str) -> None:
        #: The page, which needs no other file and no network.
        self.html = html

    def save(self, file: str | os.PathLike[str], /) -> None:
        """Write the page to a file."""
        Path(path_of("save", file)).write_text(self.html, encoding="utf-8")

    def open(self) -> str:
        """Open the page in a browser; return the path of its temporary file."""
        handle, path = tempfile.mkstemp(suffix=".html", prefix="nxla-")
        os.close(handle)
        self.save(path)
        webbrowser.open(Path(path).as_uri())
        return path

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        style = "width:100%;height:640px;border:1px solid #d5dae3"
        return f'<iframe srcdoc="{page}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<nxla view, {len(self.html)} characters>"


def _page(data: str, title: str) -> str:
    """Return the page with its data."""
    folder = files(__name__)
    text = (folder / "page.html").read_text(encoding="utf-8")
    scripts = "\n".join((folder / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    parts = {
        "TITLE": html.escape(title),
        "STYLE": (folder / "page.css").read_text(encoding="utf-8"),
        "DATA": data,
        "SCRIPT": scripts,
    }
    # Replace all placeholders in one pass, because the data may contain the name of a placeholder.
    return re.sub("@(TITLE|STYLE|DATA|SCRIPT)@", lambda found: parts[found[1]], text)


def view(
    what: Expression | StageGraph | Timeline | str | os.PathLike[str],
    file: str | os.PathLike[str] | None = None,
    /,
    *,
    group_by: str | None = None,
    timeline: Timeline | str | os.PathLike[str] | None = None,
    seconds: Sequence[float] | None = None,
    title: str | None = None,
) -> View:
    """Return a page on which a program can be explored, in one HTML file without network access.

    The page has panning, zooming and search. Groups collapse with a double click. A tooltip shows
    the type, the source line, the number of operations, the bytes and the measured time.

    Parameters
    ----------
    what : Expression, StageGraph, Timeline or path
        A program from `debug_expr`, the stages of `nxla.graph.split`, a simulation, or the file of
        a `profile`.
    file : path, optional
        The file to write.
    group_by : {"scope", "line", "none"}, optional
        How to group nodes: by the scopes of `named_scope`, by runs of nodes from one source line,
        or not at all. By default scopes if there are any, else lines.
    timeline : Timeline or path, optional
        A simulation of the stages, or the profile of a run, shown below the graph.
    seconds : sequence of float, optional
        The time of each stage, as ``StageGraph.measure`` returns it.
    title : str, optional
        The title; by default the name of the function.

    Returns
    -------
    View
        The page. A notebook displays it, ``save`` writes it, and ``open`` shows it in a browser.

    Raises
    ------
    ArgumentError
        If `what` is another object, `group_by` is unknown, or `seconds` has another length.
    FormatError
        If a file is not a profile.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.sum(nx.tanh(x)))(nx.template(3))
    >>> page = nx.view(expression)
    >>> "<html" in page.html
    True
    """
    if group_by is not None and group_by not in GROUPINGS:
        known = ", ".join(map(repr, GROUPINGS))
        raise ArgumentError(f"view: group_by: must be one of {known}; got {group_by!r}")
    is_graph = isinstance(what, _core.Expression | _core.StageGraph)
    model = Model(group_by or (grouping_of(expressions_of(what)) if is_graph else "none"))
    name = title
    names: list[str | None] = []
    if isinstance(what, _core.Expression):
        if seconds is not None:
            raise ArgumentError("view: seconds: must be passed with stages; got an expression")
        model.add_expression(what, -1)
        name = name or what.name
    elif isinstance(what, _core.StageGraph):
        names = [stage.name for stage in what.stages]
        if seconds is not None:
            seconds = as_list("view", "seconds", seconds)
            if len(seconds) != len(names):
                raise ArgumentError(
                    f"view: seconds: must have one entry for each of {len(names)} stages; "
                    f"got {len(seconds)}"
                )
        model.add_stages(what, seconds)
    elif timeline is not None:
        raise ArgumentError("view: timeline: must be passed with an expression or with stages")
    else:
        timeline = what
    spans = [] if timeline is None else _spans(timeline, names)
    name = name or "nxla"
    page = View(_page(model.to_json(name, spans), name))
    if file is not None:
        page.save(path_of("view", file))
    return page


def _spans(timeline: Any, names: Sequence[str | None]) -> list[Span]:
    """Return the bars of a simulation or of the file of a profile."""
    if isinstance(timeline, _core.Timeline):
        return spans_of_timeline(timeline, names)
    if not isinstance(timeline, str | os.PathLike):
        raise ArgumentError(
            "view: what: must be an expression, stages, a timeline, or the path of a profile; got "
            f"{type(timeline).__name__}"
        )
    path = path_of("view", timeline)
    try:
        with open(path, encoding="utf-8") as opened:
            events = json.load(opened)["traceEvents"]
        return spans_of_profile(events)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"view: {path}: must be a profile of nx.profile; got {error}") from None


_hints.install(globals())
