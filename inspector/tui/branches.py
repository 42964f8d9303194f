"""The runs of a session: makes branches, switches between runs, and opens the screens that compare or edit them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from inspector.config.settings import TurnEdit, command
from inspector.replay.adjustments import TurnInput, turn_inputs
from inspector.report.lines.glyphs import why_no_run
from inspector.report.lines.spans import one_line
from inspector.report.lines.steps import end_words
from inspector.tui.attention import advised_turn
from inspector.tui.delivery import copy_text
from inspector.tui.lists import Choose
from inspector.tui.live_run import LiveAttempt
from inspector.tui.messages import ONE_RUN, ask_operator, run_in_thread
from inspector.tui.panels import VerdictPanel
from inspector.tui.remarks import RemarkBook
from inspector.tui.session_files import command_with_files, gone_note, reading_of
from inspector.tui.session_panes import Panes
from inspector.tui.stage import SessionPart, SessionStage
from inspector.whatif.tree import differing_step
from loop_core.errors import CallerError, LoopError
from loop_core.turn.policy import STRICT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.tui.limits_form import LimitsChoice
    from inspector.tui.text_editors import EditChoice
    from inspector.tui.tuning_table import TuningTable
    from inspector.whatif.policies import Matrix
    from inspector.whatif.policies_lines import Place


MANY = 5_000
"""The number of turns from which the map of limits is prepared in a thread; each turn takes 6 µs."""


class Branches(SessionPart):
    """Switches between the runs of a session, and makes further ones."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "limits", "limits", id="limits",
                tooltip="Run again with other limits, or another policy, seam rule or server profile"),
        Binding("F", "advice", "try", id="advice",
                tooltip="Follow the advice of this turn, else of the worst: run with the settings that were tried, "
                        "or ask live"),
        Binding("E", "limits_from_here", "From here", show=False, id="limits.here",
                tooltip="Run again from this step on; what came before stays"),
        Binding("o", "run(1)", "runs", tooltip="The next run: the original and its branches", id="run.next"),
        Binding("O", "run(-1)", "Previous run", show=False, tooltip="The previous run", id="run.previous"),
        Binding("R", "tree", "Runs", show=False, id="runs",
                tooltip="All runs as a tree: open one, compare two, remove one"),
        Binding("r", "rerun", "Run again", show=False, tooltip="Run again now with the limits of this run", id="rerun"),
        Binding("Y", "copy_command", "command", id="copy.command",
                tooltip="Copy the command line that makes the same run"),
        Binding("u", "tune", "tune", id="tune",
                tooltip="Run the session under a grid of limits: what would have been enough"),
    ]

    def __init__(self, stage: SessionStage, panes: Panes, remarks: RemarkBook) -> None:
        super().__init__(stage)
        self.panes, self.remarks = panes, remarks
        self.live = LiveAttempt(stage, self.show_run)
        self._table: TuningTable | None = None
        """The grid of limits shown last."""
        self._of = stage.session
        """The reading of the session for which the grid was made; a later reading of a growing file has other turns."""

    # -- going between runs --------------------------------------------------------------------------------------

    def switch(self, index: int, compare: bool = False) -> None:
        """Shows another run, with `compare` in the Diff tab; the cursor stays on its step, else in its turn."""
        stage = self.stage
        old, run = stage.run.view, stage.runs.every[index]
        step = old.replay.place_in(run.view.replay, stage.step)
        stage.runs.index = index
        stage.step = max(0, min(step, len(old.steps) - 1))  # a step of both runs: either change is drawn at once
        self.remarks.show()
        stage.outline, stage.step = run.outline, step
        stage.query_one(VerdictPanel).run = run.name
        if compare:
            self.panes.forms["diff"] = "run"
        if compare and run.branch is not None:
            self.panes.open("diff")
        stage.show()

    def show_run(self, index: int) -> None:
        """Shows a new run at the end of the turn that it changed, and reports how that turn ends."""
        from inspector.whatif import branch_lines as whatif

        self.switch(index, compare=True)
        stage, run = self.stage, self.stage.run
        turn = whatif.compared_turn(run.branch, stage.step) if run.branch is not None else None
        if turn is None:
            stage.note = self.save_note(f"run {run.name}: nothing differs")
            return
        # The filter stays when the run changes, so the step must pass it, if any step of the turn does.
        ends = stage.rows.nearest(turn.run.deciding_step, turn.run.first, turn.run.end)
        stage.step = turn.run.deciding_step if ends is None else ends
        number, end = run.view.number(turn), end_words(turn.final_turn)
        stage.note = self.save_note(f"run {run.name}: turn {number:,} ends in {end} · o goes between runs")

    def save_note(self, note: str) -> str:
        """The reason why the current run could not be saved; the given note if it was saved."""
        why = self.stage.runs.why_unsaved(self.stage.runs.node)
        return f"not saved: {why}" if why else note

    def action_run(self, by: int) -> None:
        """Shows another run."""
        count = len(self.stage.runs.every)
        if count == 1:
            self.stage.note = ONE_RUN
            return
        self._show_place((self.stage.runs.index + by) % count)

    def _show_place(self, index: int) -> None:
        self.switch(index)
        runs = self.stage.runs
        self.stage.note = f"run {index + 1} of {len(runs.every)}: {runs.current.name}"

    def action_tree(self) -> None:
        """Opens the tree of runs."""
        from inspector.tui.run_views import RunTree

        turn = self.stage.run.view.replay.turn_at(self.stage.step)
        self.stage.app.push_screen(RunTree(self.stage.runs, turn), self._tree_closed)

    def _tree_closed(self, choice: tuple[str, int] | None) -> None:
        """Shows the chosen run, or compares it side by side with the current one."""
        if choice is None:
            self.switch(self.stage.runs.index)
        elif choice[0] == "beside":
            self._lay_beside(choice[1])
        else:
            self._show_place(choice[1])

    def _lay_beside(self, index: int) -> None:
        from inspector.tui.run_views import SideBySide
        from inspector.whatif.turn_pair import TurnSide

        tree, right = self.stage.runs.tree, self.stage.runs.node
        left = tree.every[index]
        if left is right and right.parent is not None:
            left = right.parent
        turn = right.view.replay.turn_at(self.stage.step)
        sides = (TurnSide(node.path, node.view, node.view.turns[turn]) for node in (left, right))
        ask_operator(self.stage.app, SideBySide(*sides), lambda step: self.stage.go(step, ""))

    # -- other settings ------------------------------------------------------------------------------------------

    def action_limits(self) -> None:
        """Opens the form for other settings."""
        self._form(None)

    def action_limits_from_here(self) -> None:
        """Opens the form for settings from this step on."""
        self._form(self.stage.step)

    def _form(self, since: int | None, live: Mapping[str, str] | None = None) -> None:
        from inspector.tui.limits_form import LimitsForm

        if self.stage.run.view.steps:
            form = LimitsForm(self.stage.runs.every, self.stage.runs.index, self.stage.step, since, live)
            ask_operator(self.stage.app, form, lambda limits: self._limits_chosen(limits, since))

    def _limits_chosen(self, limits: LimitsChoice, since: int | None) -> None:
        if limits.live:
            self.live.ask(limits.assignments, since)
        else:
            self.branch(limits.assignments, since)

    def action_advice(self) -> None:
        """Makes the run that tested the advice of this turn or the worst; opens a form if only a live answer helps."""
        view = self.stage.run.view
        turn = advised_turn(view, self.stage.step)
        if turn is None:
            return
        here, advice, number = view.turn_of(self.stage.step), turn.verdict.advice, view.number(turn)
        if advice is None:
            self.stage.note = f"turn {number:,}: nothing to change"
        elif advice.set is not None:
            self.branch(dict(advice.set), before=turn.run.end)
        elif advice.live:
            if turn is not here:
                self.stage.go(view.deciding_step(turn), "")
            self.stage.note = f"turn {number:,}: enter, then y asks the provider, or p a stand-in without a key"
            self._form(None, advice.guess or {})
        else:
            self.stage.note = f"turn {number:,}: F runs nothing, because {one_line(why_no_run(advice))}"

    def action_rerun(self) -> None:
        """Runs again with the same settings, to show that the same recording gives the same run."""
        self.branch({})

    def branch(self, assignments: dict[str, str], since: int | None = None, before: int | None = None) -> None:
        """Shows the run with these settings beside the original; makes it if there is none."""
        try:
            index, new = self.stage.runs.under(assignments, since, before)
        except LoopError as why:
            self.stage.note = str(why)
            return
        if not new and index in (0, self.stage.runs.index):  # there is nothing to compare
            self.switch(index)
            name = self.stage.run.name
            self.stage.note = f"run {name} has these settings already: the recording gives the same again"
            return
        self.show_run(index)

    def action_copy_command(self) -> None:
        """Copies the command line of this run."""
        app, reading = self.stage.app, reading_of(self.stage.app)
        command = self.stage.runs.command(reading.api, reading.profile)
        self.stage.note = copy_text(app, command_with_files(self.stage.session.before, command))

    # -- a grid of limits ----------------------------------------------------------------------------------------

    def action_tune(self) -> None:
        """Opens the grid for this run; for a run made from a cell, the same grid again."""
        if not self.stage.run.view.steps:
            self.stage.note = "there is nothing to tune: no turn was read"
            return
        from inspector.tui.tuning_table import table_over

        table = self._table if self._of is self.stage.session else None
        if table is not None and self.stage.runs.node.key in (table.run, *table.cell_runs):
            self._show_map(table)
        elif (turns := len(self.stage.run.view.turns)) < MANY:
            self._show_map(table_over(self.stage))
        else:
            self.stage.note = f"preparing the map of {turns:,} turns…"
            run_in_thread(self.stage, lambda: table_over(self.stage), self._show_map_unless_left)

    def _show_map_unless_left(self, table: TuningTable) -> None:
        if self.stage.is_active:  # a screen below a question is current, but not active
            self._show_map(table)

    def _show_map(self, table: TuningTable) -> None:
        from inspector.tui.tuning_screen import TuneScreen

        self._table, self._of, stage = table, self.stage.session, self.stage
        if stage.runs.node.key == table.run and not stage.for_view:
            table.come_from(stage.run.view.replay.turn_at(stage.step))
        stage.note = ""
        screen = TuneScreen(table)
        screen.note = gone_note(stage.runs.case.recording)
        ask_operator(stage.app, screen, self._cell_chosen)

    def _cell_chosen(self, cell: int) -> None:
        """Shows the run of a cell, at its first difference from the original in the turn that the grid shows."""
        if self._table is None:
            return
        self.stage.for_view = False
        stage, runs, single_turn = self.stage, self.stage.runs, self._table.single_turn
        runs.index = next((at for at, node in enumerate(runs.tree.every) if node.key == self._table.run), 0)
        index, _ = runs.with_settings(self._table.settings(), 0)
        self._table.cell_runs.add(runs.tree.every[index].key)
        run = runs.every[index]
        view, parts = run.view, None if run.branch is None else differing_step(run.branch, single_turn)
        self.switch(index, compare=parts is not None)
        turn = view.turn_of(stage.step if parts is None else parts) if single_turn is None else view.turns[single_turn]
        stage.step = view.deciding_step(turn) if parts is None else parts
        number = view.number(turn)
        result = f"nothing differs in turn {number:,}" if parts is None else f"turn {number:,} differs from here on"
        stage.note = self.save_note(f"{result} · u goes back to the grid")


# -- Side by side ----------------------------------------------------------------------------------------------------


class Comparisons(SessionPart):
    """Opens the views that compare the run under every policy and in every provider's dialect."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "policies", "policies", id="policies",
                tooltip="Policies by turns: what each loop would have run, held, continued or lost"),
        Binding("P", "app.providers", "providers", id="providers",
                tooltip="Providers side by side: one answer as each would report it"),
    ]

    def __init__(self, stage: SessionStage, branches: Branches) -> None:
        super().__init__(stage)
        self.branches = branches

    def action_policies(self) -> None:
        """Shows the session under every policy, with the other settings of this run."""
        from inspector.tui.policies_screen import PoliciesScreen

        runs, replay, reading = self.stage.runs, self.stage.run.view.replay, reading_of(self.stage.app)
        settings = replace(replay.settings, policy=STRICT)
        twin = command_with_files(self.stage.session.before, command(runs.paths, settings, reading.api, reading.profile,
                                                          verb="policies"))
        run = self.stage.name_over_all_turns(runs.current.name)
        turn = self.stage.came_from if self.stage.for_view or not replay.turns else replay.turn_at(self.stage.step)
        screen = PoliciesScreen(runs.case, settings, run, twin, turn, self.stage.past_filter)
        screen.note = gone_note(runs.case.recording)
        ask_operator(self.stage.app, screen, self._policy_chosen)

    def _policy_chosen(self, choice: tuple[Matrix, Place]) -> None:
        """Runs the session under a cell's policy, at the step of its turn that first differs from strict."""
        self.stage.for_view = False
        from inspector.whatif import policies_lines as lines

        (matrix, place), stage = choice, self.stage
        index, _ = stage.runs.under(lines.assignments(matrix, place), 0)
        self.branches.switch(index, compare=True)
        stage.go(lines.step_at(matrix, place), "")
        cell, turn = matrix.rows[place[0]][place[1]], place[0] + 1
        parts = "nothing differs from strict" if cell.step is None else "differs from strict here"
        result = f"run {stage.run.name}: turn {turn}: {cell.decision.word} · {parts}"
        stage.note = self.branches.save_note(f"{result} · p goes back to the policies")


# -- Runs with an edited message or tool result ----------------------------------------------------------------------

SHOWN_CHARS = 200
"""The number of characters that the list shows of each input."""


class EditedInputs(SessionPart):
    """Makes runs in which one input of a turn is edited."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("W", "edit_input", "Edit text", show=False, id="edit.input",
                tooltip="Edit a message or a tool result of this turn, and run it again"),
    ]

    def __init__(self, stage: SessionStage, branches: Branches) -> None:
        super().__init__(stage)
        self.branches = branches

    def action_edit_input(self) -> None:
        """Opens the editor for an input of the turn at the cursor; if there are several, first asks which one."""
        view = self.stage.run.view
        if not view.steps:
            self.stage.note = "there is no turn to edit: nothing was read"
            return
        turn = view.turn_of(self.stage.step)
        inputs = turn_inputs(view.replay.case, turn.run.record)
        if not inputs:
            self.stage.note = "the inputs of this turn were not recorded"
        elif len(inputs) == 1:
            self._edit(turn.id, inputs[0])
        else:
            rows = [(f"{each.number} {each.what}", one_line(each.text, SHOWN_CHARS)) for each in inputs]
            every = dict(zip([word for word, _ in rows], inputs, strict=True))
            title = f"Give turn {view.number(turn):,} another text: which one?"
            choice = Choose(title, rows, self._nearest(inputs, turn.id))
            ask_operator(self.stage.app, choice, lambda word: self._edit(turn.id, every[word]))

    def _nearest(self, inputs: list[TurnInput], turn: str) -> int:
        """The last input that the turn had received by the step at the cursor."""
        steps = {each.exchange: self._step(each, turn) for each in {each.exchange: each for each in inputs}.values()}
        places = [at for at, each in enumerate(inputs) if (step := steps[each.exchange]) is not None
                 and step <= self.stage.step]
        return places[-1] if places else 0

    def _step(self, model_input: TurnInput, turn: str) -> int | None:
        from inspector.replay.rerun import edit_step

        try:
            return edit_step(self.stage.run.view.replay, _edit_of(model_input, turn))
        except CallerError:
            return None

    def _edit(self, turn: str, model_input: TurnInput) -> None:
        from inspector.replay.rerun import edit_step
        from inspector.tui.text_editors import InputEditor

        replay, edit = self.stage.run.view.replay, _edit_of(model_input, turn)
        now = next((each.text for each in replay.settings.edits if (each.id, each.input) == (turn, model_input.number)),
                   model_input.text)
        try:
            since = edit_step(replay, edit)
        except CallerError as why:
            self.stage.note = str(why)
            return
        where = f"Turn {turn.removeprefix('t')}, input {model_input.number}"
        title = f"{where}: {model_input.what}, given at step {since + 1:,}"
        ask_operator(self.stage.app, InputEditor(title, now), lambda choice: self._run(edit, choice, since))

    def _run(self, edit: TurnEdit, choice: EditChoice, since: int) -> None:
        if choice.live:
            self.branches.live.ask({edit.name: choice.text}, since)
            return
        self.branches.branch({edit.name: choice.text}, since)
        from inspector.whatif.branch_lines import stop_steps

        stops = stop_steps(self.stage.run.view.replay)
        if stops:
            message = f"the recording stops answering at step {stops[-1] + 1:,} · W, F4 asks live"
            self.stage.note = self.branches.save_note(message)


def _edit_of(model_input: TurnInput, turn: str) -> TurnEdit:
    return TurnEdit(int(turn.removeprefix("t")), model_input.number, model_input.text)
