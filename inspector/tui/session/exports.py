"""Exporting: the view, the session, a response or a bug report, into a folder that is named or as a download."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.spans import text_of
from inspector.tui.session.panes import Panes
from inspector.tui.session.stage import Part, SessionStage
from inspector.tui.writing import leave, picture

VIEWS: Mapping[str, str] = {
    "svg": "this screen as a picture (SVG)",
    "view": "what this view shows, as text",
}
"""Forms that only the app has, beside those of `inspector export`."""


class Exports(Part):
    """What leaves the program."""

    TITLE_OF_KEYS = "Export"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", "export", tooltip="Write a page, a picture, a session file, curl, a test, a bug report",
                id="export"),
        Binding("X", "report", "Bug report", show=False, id="report",
                tooltip="Write a bug report: the smallest session that shows this turn's finding, without credentials"),
    ]

    def __init__(self, stage: SessionStage, panes: Panes) -> None:
        super().__init__(stage)
        self.panes = panes

    def action_export(self) -> None:
        """Asks for a form, then for a folder; a browser takes the file by itself."""
        from inspector.export import FORMS
        from inspector.tui.screens.prompt import Choose

        rows = [*VIEWS.items(), *((name, form.about) for name, form in FORMS.items())]
        screen = picture(self.stage.app)

        def chosen(form: str | None) -> None:
            if form is not None:
                leave(self.stage.app, lambda: self.files(form, screen), self.stage.say)

        self.stage.app.push_screen(Choose("Export", rows), chosen)

    def action_report(self) -> None:
        """A bug report into the working directory, or as a download."""
        leave(self.stage.app, lambda: self.files("bug", ""), self.stage.say, ".")

    def files(self, form: str, screen: str) -> Mapping[str, str]:
        """The files of a form: name -> content; `screen` is its picture."""
        from inspector.export import FORMS, Chosen
        from inspector.export.write import name_of
        from inspector.report.facts import answer_at
        from inspector.sessions import redact

        view = self.stage.run.view
        name = name_of(view)
        if form == "svg":
            return {f"{name}-{self.panes.tab}.svg": redact.text(screen)}
        if form == "view":
            lines = [text_of(self.stage.sheet.line(at)) for at in range(len(self.stage.sheet))]
            return {f"{name}-{self.panes.tab}.txt": redact.text("\n".join(lines)) + "\n"}
        facts = answer_at(view, self.stage.step) if view.steps else None
        turn = view.turn_of(self.stage.step) if form == "bug" and view.steps else None
        return FORMS[form].make(Chosen(view, turn, facts, name))
