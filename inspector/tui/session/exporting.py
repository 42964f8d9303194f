"""Exporting: the view, the session, a response or a bug report, into a folder that is named or as a download."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.spans import text_of
from inspector.tui.session.base import Base

if TYPE_CHECKING:
    from inspector.tui.writing import Make

VIEWS: Mapping[str, str] = {
    "svg": "this screen as a picture (SVG)",
    "view": "what this view shows, as text",
}
"""Forms that only the app has, beside those of `inspector export`."""


class Exporting(Base):
    """What leaves the program."""

    TITLE_OF_KEYS = "Export"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "export", "export", tooltip="Write a page, a picture, a session file, curl, a test, a bug report",
                id="export"),
        Binding("X", "report", "Bug report", show=False, id="report",
                tooltip="Write a bug report: the smallest session that shows this turn's finding, without credentials"),
    ]

    def action_export(self) -> None:
        """Asks for a form, then for a folder; a browser takes the file by itself."""
        from inspector.export import FORMS
        from inspector.tui.screens.choose import Choose
        from inspector.tui.writing import picture as pictured

        rows = [*VIEWS.items(), *((name, form.about) for name, form in FORMS.items())]
        picture = pictured(self.app)

        def chosen(form: str | None) -> None:
            if form is not None:
                self._leave(lambda: self._files(form, picture))

        self.app.push_screen(Choose("Export", rows), chosen)

    def action_report(self) -> None:
        """A bug report into the working directory, or as a download."""
        self._leave(lambda: self._files("bug", ""), ".")

    def _files(self, form: str, picture: str) -> Mapping[str, str]:
        from inspector.export import FORMS, Chosen
        from inspector.export.write import name_of
        from inspector.report.answers import answer_at
        from inspector.sessions import redact

        view = self.run.view
        name = name_of(view)
        if form == "svg":
            return {f"{name}-{self.tab}.svg": redact.text(picture)}
        if form == "view":
            lines = [text_of(self.sheet.line(at)) for at in range(len(self.sheet))]
            return {f"{name}-{self.tab}.txt": redact.text("\n".join(lines)) + "\n"}
        facts = answer_at(view, self.step) if view.steps else None
        turn = view.turn_of(self.step) if form == "bug" and view.steps else None
        return FORMS[form].make(Chosen(view, turn, facts, name))

    def _leave(self, make: Make, folder: str | None = None) -> None:
        from inspector.tui.writing import leave

        def say(text: str) -> None:
            self.note = text

        leave(self.app, make, say, folder)
