"""The panes of the session screen: tabs, forms, search and copying, and navigation between facts and their bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.report.lines.merged import trying
from inspector.report.lines.spans import LineSheet, in_quotes, text_of
from inspector.report.run_answers import answer_at
from inspector.tui.delivery import copy_text
from inspector.tui.key_words import TABS
from inspector.tui.messages import NOT_SEARCHED, LinesPointed, ask_operator
from inspector.tui.session_widgets import StepList
from inspector.tui.sheets import Key, Sheets, Viewpoint, response_key
from inspector.tui.stage import SessionPart, SessionStage
from inspector.tui.text_view import TextView
from loop_core.turn.continuation import SeamRule

if TYPE_CHECKING:
    from inspector.report.lines.wire import FactChoice
    from inspector.sessions.provenance import Provenance

NEXT_MATCH = " · n the next, N the previous one"
FILTER_HINT = " · f finds the steps whose messages, answers or calls hold it"
"""The hint after a search without a match, because a search covers only the displayed view."""


class Panes(SessionPart):
    """Shows the step list, the text and the machine if there is room; one pane has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("/", "search", "search", tooltip="Search in this view", id="search"),
        Binding("v", "mode", "view", id="mode",
                tooltip="Another form of this view: merged, side by side; bytes, request; step, request, run"),
        Binding("s", "seam", "seam", id="seam",
                tooltip="Join the segments of a cut answer by the next seam rule, beside the rule in force"),
        Binding("y", "copy", "copy", tooltip="Copy what this view shows", id="copy"),
        Binding("n", "again(1)", "match", tooltip="The next match of the search", id="search.next"),
        Binding("N", "again(-1)", "Previous match", show=False, tooltip="The previous match", id="search.previous"),
        Binding("w", "wrap", "wrap", tooltip="Wrap long lines, or scroll sideways", id="wrap"),
        Binding("z", "zoom", "zoom", tooltip="This pane alone, or all of them", id="zoom"),
        Binding("S", "machine", "machine", show=False, id="machine.fold",
                tooltip="The machine beside the text: fold it to one row, or unfold it"),
        *(Binding(tab.key, f"tab('{tab.name}')", tab.title, show=False, tooltip=tab.about, id=f"tab.{tab.name}")
          for tab in TABS),
        Binding("tab", "other_pane", "Other pane", show=False, tooltip="To the other pane", id="pane"),
    ]

    def __init__(self, stage: SessionStage) -> None:
        super().__init__(stage)
        self.tab = "merged"
        self.listing = False
        """Whether the step list is open as a tab, because there is no room beside the text."""
        self.forms = {tab.name: tab.forms[0] if tab.forms else "" for tab in TABS}
        """Tab -> the form in which it shows a step."""
        self.seam: SeamRule | None = None
        self.chosen_fact: FactChoice | None = None
        """The fact whose bytes the Wire tab shows."""
        self.sheets = Sheets()
        self._roomy = True
        self._folded: bool | None = None
        """Whether the operator folded the machine to one row; None if the width decides."""
        self._fact_response: Key = ()
        """The response that the fact belongs to."""
        self._needle = ""

    @property
    def viewpoint(self) -> Viewpoint:
        """The current tab, step and form."""
        run = self.stage.run
        return Viewpoint(self.tab, run.outline, self.stage.step, self.forms[self.tab], self.stage.runs.comparison,
                         self.seam, self.chosen_fact)

    def sheet(self) -> LineSheet:
        """The current sheet. The chosen fact belongs to one response, and is dropped at any other."""
        if self.chosen_fact is not None and self._fact_response != response_key(self.viewpoint):
            self.chosen_fact = None
        return self.sheets.at(self.viewpoint)

    @property
    def _steps(self) -> StepList:
        return self.stage.query_one(StepList)

    @property
    def _text(self) -> TextView:
        return self.stage.query_one(TextView)

    # -- which pane ----------------------------------------------------------------------------------------------

    def open(self, tab: str) -> None:
        """Opens a tab over the text."""
        self.listing, self.tab = False, tab
        self.mark_tab()
        self.stage.show()

    def pick(self, choice: FactChoice | None) -> None:
        """Shows the bytes of a fact in the Wire tab."""
        self.chosen_fact, self._fact_response = choice, response_key(self.viewpoint)
        if self.forms["wire"] == "request":
            self.forms["wire"] = "events"
        self.open("wire")

    def mark_tab(self) -> None:
        """Marks the open tab."""
        listing = self.stage.narrow and self.listing
        self.stage.open_tab = "steps" if listing else self.tab
        self.stage.set_class(listing, "-listing")

    def fit(self, narrow: bool, roomy: bool) -> None:
        """Shows one pane or several, focuses a visible one, and folds the machine if the text needs room."""
        if not self.stage.query(TextView):
            return  # a screen that is removed loses its panes before its last messages
        self.stage.narrow, self._roomy = narrow, roomy
        self._fold()
        self.mark_tab()
        if narrow:
            wanted = self._steps if self.listing else self._text
        else:
            wanted = self._text if self._text.has_focus else self._steps
        if not wanted.has_focus:
            wanted.focus(scroll_visible=False)

    def leave_list(self) -> None:
        """Moves the focus from the list to the opened step."""
        if self.stage.narrow:
            self.listing = False
            self.mark_tab()
        self._text.focus(scroll_visible=False)

    def action_tab(self, name: str) -> None:
        """Opens a tab; the steps are a tab if there is no room for them beside the text."""
        if name == self.stage.open_tab or (name == "steps" and self._steps.has_focus):
            self.stage.note = f"{name} is open already"
        if name == "steps":
            self.listing = self.stage.narrow
            self.mark_tab()
            self._steps.focus(scroll_visible=False)
            return
        self.open(name)
        if self.stage.narrow:
            self._text.focus(scroll_visible=False)

    def action_other_pane(self) -> None:
        """Focuses the other pane; if only one is visible, opens the other tab."""
        if self.stage.narrow:
            self.action_tab(self.tab if self.listing else "steps")
            return
        self.stage.remove_class("-zoom-text", "-zoom-steps")
        (self._text if self._steps.has_focus else self._steps).focus(scroll_visible=False)

    def action_machine(self) -> None:
        """Folds the machine to one row, or unfolds it; if only one pane is visible, the machine is a tab."""
        if self.stage.narrow:
            self.action_tab("machine")
            return
        self._folded = not self.stage.has_class("-folded")
        self._fold()

    def _fold(self) -> None:
        folded = not self._roomy if self._folded is None else self._folded
        self.stage.set_class(folded and not self.stage.narrow, "-folded")

    def action_zoom(self) -> None:
        """Shows one pane alone."""
        if self.stage.narrow:
            self.stage.note = "there is room for one pane only · tab goes to the other"
            return
        steps = self._steps.has_focus
        zoomed = self.stage.has_class("-zoom-text") or self.stage.has_class("-zoom-steps")
        self.stage.set_class(not zoomed and not steps, "-zoom-text")
        self.stage.set_class(not zoomed and steps, "-zoom-steps")

    def close_open(self) -> bool:
        """Shows all panes again, else removes search marks; returns whether it changed anything."""
        if self.stage.has_class("-zoom-text") or self.stage.has_class("-zoom-steps"):
            self.stage.remove_class("-zoom-text", "-zoom-steps")
            return True
        if not self._needle:
            return False
        self._needle = self._text.needle = ""
        self.stage.note = "the search is closed"
        return True

    # -- in which form -------------------------------------------------------------------------------------------

    def action_mode(self) -> None:
        """Switches to another form of the same view."""
        forms = next(tab.forms for tab in TABS if tab.name == self.tab)
        if not forms:
            self.stage.note = "this view has one form; Merged, Wire and Diff have more"
            return
        if self.tab == self.forms[self.tab] == "merged" and not self._has_segments():
            self.stage.note = "there is no answer yet to show side by side"
            return
        self.forms[self.tab] = forms[(forms.index(self.forms[self.tab]) + 1) % len(forms)]
        self.stage.show()

    def _has_segments(self) -> bool:
        """Whether the turn at the cursor has a segment of an answer."""
        run = self.stage.run
        last = run.view.steps[run.outline.block_of(self.stage.step).end - 1] if run.view.steps else None
        return last is not None and any(last.turn.answers)

    def action_seam(self) -> None:
        """Tries the next seam rule on the view; after the last, returns to the rule in force."""
        run = self.stage.run
        if not run.view.steps:
            return
        if self.tab != "merged":
            self.stage.note = "seams are tried in Merged: 1 opens it"
            return
        block = run.outline.block_of(self.stage.step)
        in_force = run.view.steps[block.end - 1].turn.policy.seam
        rules = [in_force, *(rule for rule in SeamRule if rule is not in_force)]
        at = rules.index(self.seam) if self.seam in rules else 0
        following = rules[(at + 1) % len(rules)]
        self.seam = None if following is in_force else following
        self.stage.show()
        self.stage.note = trying(run.view, block, following)

    def action_wrap(self) -> None:
        """Switches between wrapping and sideways scrolling."""
        text = self._text
        text.wrap = not text.wrap
        self.stage.note = ("long lines are wrapped" if text.wrap
                           else "long lines scroll sideways: h and l, or the arrows")

    # -- search and copying --------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Asks for a search text."""
        from inspector.tui.questions import Prompt

        ask_operator(self.stage.app, Prompt("search", "text in this view", self._needle), self._search)

    def _search(self, needle: str) -> None:
        self._needle = self._text.needle = needle
        self._find(1, again=False)

    def action_again(self, by: int) -> None:
        """Goes to the next or previous match."""
        if not self._needle:
            self.stage.note = NOT_SEARCHED
            return
        self._find(by, again=True)

    def _find(self, by: int, again: bool) -> None:
        if not self._needle:
            return
        if self._steps.has_focus:
            nowhere = f"{in_quotes(self._needle)} is in no step{self.stage.rows.within}"
            found = self._steps.find(self._needle, by, again)
            if found is None:
                nowhere += ", but in this view" if self._text.find(by, again) else FILTER_HINT
            self.stage.go(found, nowhere)
        elif not self._text.find(by, again):
            step = self._steps.find(self._needle, by, again=True)
            elsewhere = FILTER_HINT if step is None else f", but step {step + 1:,} says it: :{step + 1}"
            self.stage.note = f"{in_quotes(self._needle)} is not in this view{elsewhere}"
        elif not again or self._text.wrapped:
            went_on = f", on from the {'first' if by > 0 else 'last'} line" if self._text.wrapped else ""
            self.stage.note = f"{in_quotes(self._needle)} is here{went_on}{NEXT_MATCH}"

    def action_copy(self) -> None:
        """Copies the content of the focused pane."""
        text = self._steps.copy_text() if self._steps.has_focus else self.stage.sheet.copy_text()
        self.stage.note = copy_text(self.stage.app, text)


# -- Tracing: from a fact to the bytes that it was read from, and from bytes to the facts read from them -------------


LARGE = 300_000
"""The size in bytes from which decoding a body with provenance takes a noticeable time."""


class Tracing(SessionPart):
    """Navigation between facts and bytes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(".", "fact(1)", "fact", id="fact.next",
                tooltip="The next fact of this response: the bytes that it was read from"),
        Binding("comma", "fact(-1)", "Previous fact", show=False, tooltip="The previous fact", id="fact.previous"),
        Binding(">", "slice(1)", "Next slice", show=False, id="slice.next",
                tooltip="The next slice, if a fact was read from several"),
        Binding("<", "slice(-1)", "Previous slice", show=False, tooltip="The previous slice", id="slice.previous"),
    ]

    def __init__(self, stage: SessionStage, panes: Panes) -> None:
        super().__init__(stage)
        self.panes = panes

    def action_fact(self, by: int) -> None:
        """Goes to the next or previous fact, in the Wire tab."""
        from inspector.report.lines.wire import next_fact

        self._act_on_facts(lambda found: self._look(found, next_fact(found, self.panes.chosen_fact, by)))

    def action_slice(self, by: int) -> None:
        """Goes to the next or previous slice of the selected fact."""
        from inspector.report.lines.wire import next_reading

        choice = self.panes.chosen_fact
        if choice is None:
            self.stage.note = "no fact is selected yet: . selects the first"
        else:
            self._act_on_facts(lambda found: self._look(found, next_reading(found, choice, by)))

    def _act_on_facts(self, act: Callable[[Provenance], None]) -> None:
        """Acts on the facts read from the response at the cursor; a large body is decoded in a thread."""
        if not self.stage.run.view.steps:
            return
        viewpoint, facts = self.panes.viewpoint, answer_at(self.stage.run.view, self.stage.step)
        if facts is None or facts.exchange.size <= LARGE or self.panes.sheets.has_facts(viewpoint):
            self._act(act)
            return
        self.stage.note = f"finding out what {facts.exchange.size:,} bytes became…"

        async def beside() -> None:
            await asyncio.to_thread(self.panes.sheets.readings, viewpoint)
            if response_key(self.panes.viewpoint) == response_key(viewpoint):
                self._act(act)

        self.stage.run_worker(beside(), group="tracing", exclusive=True)

    def _act(self, act: Callable[[Provenance], None]) -> None:
        from inspector.report.lines.wire import NONE, OF_ROWS

        found = self.panes.sheets.readings(self.panes.viewpoint)
        if found is None or not found.facts:
            facts = answer_at(self.stage.run.view, self.stage.step)
            of_rows = facts is not None and facts.exchange.recorder is not None
            self.stage.note = text_of(OF_ROWS if of_rows else NONE)
        else:
            act(found)

    def _look(self, provenance: Provenance, choice: FactChoice | None) -> None:
        """Shows the bytes of a fact, and names it in the note unless the view's head shows it to its end."""
        from inspector.report.lines.wire import fact_line

        self.panes.pick(choice)
        facts = answer_at(self.stage.run.view, self.stage.step)
        if choice is not None and facts is not None:
            line = text_of(fact_line(provenance, choice, facts.exchange.response))
            self.stage.note = "" if self.stage.query_one(TextView).shows_pinned else line

    def follow_lines(self, message: LinesPointed) -> None:
        """Handles a click on a line of the text, or enter over the visible lines."""
        if self.panes.tab == "wire" and self.panes.forms["wire"] != "request":
            self._act_on_facts(lambda found: self._what_became(found, message))
        elif self.panes.tab == "response" and any(self._facts_of(message)):
            self._act_on_facts(lambda found: self._bytes_of(found, message))
        elif not message.width:
            self.stage.note = "enter leads from a fact to its bytes in Response (2), and back in Wire (3)"

    def _what_became(self, provenance: Provenance, message: LinesPointed) -> None:
        from inspector.report.lines.slices import Bytes
        from inspector.report.lines.wire import next_of, picked_of, range_note, readings_in

        sheet = self.stage.sheet
        if not isinstance(sheet, Bytes):
            return
        spans = [span for line in range(message.first, message.last + 1) if (span := sheet.span(line)) is not None]
        if not spans:
            return
        start, end = spans[0][0], spans[-1][1]
        reads = readings_in(provenance, start, end)
        spot = sheet.spot(message.first, message.row, message.column, message.width) if message.width else None
        exact = provenance.at(spot[0]) if spot is not None and spot[1] - spot[0] == 1 else ()
        if exact:
            self.panes.pick(picked_of(provenance, exact[0]))
        elif reads:
            self.panes.pick(next_of(provenance, reads, self.panes.chosen_fact))
        self.stage.note = range_note(reads, start, end)

    def _facts_of(self, message: LinesPointed) -> Sequence[str | None]:
        """The facts shown by lines of the Response tab."""
        from inspector.report.lines.response import ResponseSheet

        sheet = self.stage.sheet
        return sheet.facts[message.first : message.last + 1] if isinstance(sheet, ResponseSheet) else ()

    def _bytes_of(self, provenance: Provenance, message: LinesPointed) -> None:
        from inspector.report.lines.wire import NONE, FactChoice

        fact = next((fact for fact in self._facts_of(message) if fact in provenance.facts), None)
        if fact is None:
            self.stage.note = text_of(NONE)
        else:
            self._look(provenance, FactChoice(fact))
