"""The table of turns: one row per turn of all inputs, worst first, from which each session opens.

Without a path it lists the transcripts that agents on this machine wrote, the sample sessions and recent files. Files
are read one after the other in a thread; rows keep their places until all files are read. Only the rows stay in memory,
not the sessions.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from inspector.report import turn_rows, turn_table
from inspector.report.lines.spans import count_of, in_quotes
from inspector.report.table_rows import LARGE, PENDING
from inspector.report.turn_rows import TurnRow
from inspector.sessions import intake
from inspector.tui import messages, table_growth, turns_reading
from inspector.tui.attention import attention_note, place_after
from inspector.tui.delivery import ask_folder, copy_text, deliver
from inspector.tui.key_words import TABS
from inspector.tui.keys import KeyBar
from inspector.tui.lists import Choose
from inspector.tui.messages import NOT_SEARCHED, PathWanted, RowOpened, TurnsRead, TurnWanted, ask_operator
from inspector.tui.session_files import OpenSession, why_unopenable
from inspector.tui.turn_counts import TurnCounts, attention_rows, count_apart, count_groups
from inspector.tui.turn_list import NO_MATCH_NOTE, SORTS, Section, TurnAbout, TurnHeading, TurnList, rows_of_session

NOTHING_YET = "nothing is read yet: the rows come as the files are read"
OPENED_EARLY = "it was opened before every file was read · ! goes to the worst turn"
LARGEST_READ = 16_000_000
"""The largest size in bytes of a file that is read for its verdict although the operator did not name it."""
TALL, SMALL_ABOUT, LARGE_ABOUT = 30, 6, 8
"""The height of the screen from which the details are larger, and the rows of the smaller and of the larger details."""
PROGRESS = 0.5  # seconds between two updates while files are read


class TurnsScreen(turns_reading.ReadingScreen):
    """All inputs, one row per turn."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "filter", "filter", tooltip="Show only the turns that match: held, verdict:truncated",
                id="turns.filter"),
        Binding("/", "search", "search", tooltip="Search messages, answers, arguments, names", id="turns.search"),
        Binding("s", "sort", "sort", tooltip="Sort by a column; the same again reverses the order", id="turns.sort"),
        Binding("v", "by_file", "by session", tooltip="One row per session, by its worst turn; or one row per turn",
                id="turns.group"),
        Binding("exclamation_mark", "attention", "worst", id="turns.attention",
                tooltip="The next row that needs attention, the worst first"),
        Binding("colon", "go_to", "go to", show=False, id="turns.go-to",
                tooltip="A row's number, turn 2 of its session, file NAME, or a command's name"),
        Binding("n", "again(1)", "Match", show=False, tooltip="The next match of the search", id="turns.next"),
        Binding("N", "again(-1)", "Previous match", show=False, tooltip="The previous match", id="turns.previous"),
        Binding("c", "stop", "Stop reading", show=False, tooltip="Stop reading the files that are not read yet",
                id="turns.stop"),
        Binding("o", "path", "open a path", tooltip="Open a file or folder by its path", id="picker.path"),
        Binding("L", "app.live", "live", id="picker.live",
                tooltip="A live turn: ask a provider or a local model, each effect by hand"),
        Binding("P", "app.providers", "providers", id="providers",
                tooltip="Providers side by side: one answer as each would report it"),
        Binding("u", "over_all('tune')", "tune", id="turns.tune",
                tooltip="Run the named files, else this session, under a grid of limits: what would have been enough"),
        Binding("p", "over_all('policies')", "policies", id="turns.policies",
                tooltip="The named files as one session, else this session, under every policy"),
        *(Binding(tab.key, f"open_at('{tab.name}')", tab.title, show=False, tooltip=f"Open the turn at {tab.title}",
                  id=f"tab.{tab.name}") for tab in TABS),
        Binding("F", "open_at('', 'advice')", "try", show=False, tooltip="Open the turn, and follow its advice",
                id="advice"),
        Binding("V", "open_at('', 'verdict')", "verdict", show=False, tooltip="Open the turn, and its whole verdict",
                id="verdict"),
        Binding("x", "export", "export", tooltip="Write the table as CSV", id="turns.export"),
        Binding("y", "copy", "Command", show=False, tooltip="Copy the command line that shows the same",
                id="turns.copy"),
    ]
    DEFAULT_CSS = """
    #turns-counts { padding: 0 1; background: $surface; }
    #turns { height: 1fr; padding: 0 0 0 1; scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden; }
    #turns-about { height: 6; padding: 0 1; border-top: hkey $border; }
    """

    def __init__(
        self, sections: Sequence[Section] = (), *, session: OpenSession | None = None, named: bool = True,
        begun: bool = False,
    ) -> None:
        super().__init__()
        self.sections = sections
        self.session = session
        self.begun = begun  # only the beginning of a file was read; its last turn may continue, and is not listed
        self.named = named
        self.turn_list = TurnList(sections, by_file=not self.named, id="turns")
        self.read, self.total = 0, 0
        self.counts = count_apart(self.turn_list, ())
        self.reading = False
        self.parts = (self,)  # `esc` closes the filter
        self._last = ""  # the filter removed last, which the prompt offers again
        self._needle = ""
        self._match: TurnRow | None = None  # the result of the last search
        self._large: list[str] = []  # larger than `LARGEST_READ` and not named by the operator; a search reads them
        self._searching = False  # whether a search is reading them
        if session is not None:
            rows = rows_of_session(session)
            if begun:
                rows = [row._replace(of=0) for row in rows if row.verdict is not None][:-1]
            self.turn_list.set_rows(session.paths[0], rows)
            self.turn_list.sort = "" if begun else "verdict"
            self.turn_list.relist()
        for path in () if self.named else [path for section in sections for path in section.paths]:
            large = intake.size_of(path) > LARGEST_READ
            self._large += [path] if large else []
            self.turn_list.set_rows(path, [turn_rows.unread_row((path,), path, LARGE if large else PENDING)])
        if not self.named:
            self.turn_list.relist()

    def compose(self) -> ComposeResult:
        """Yields the counts, the columns, the rows, the details of a row and the key bar."""
        yield TurnCounts(id="turns-counts")
        yield TurnHeading(self.turn_list, self.sort_by)
        yield self.turn_list
        yield TurnAbout(self.turn_list)
        yield KeyBar(id="keys").data_bind(TurnsScreen.note)

    def on_mount(self) -> None:
        """Starts reading."""
        self.on_resize()  # a change of a height after the first layout would take 10 ms more
        self.turn_list.focus()
        self.watch(self.turn_list, "cursor", self.query_one(TurnAbout).follow)
        paths = [path for section in self.sections for path in section.paths
                 if self.named or self.turn_list.slots[path][0].why == PENDING]
        self.reading = self.begun if self.session is not None else bool(paths or self._large)
        if self.reading and self.session is not None:
            self.call_after_refresh(turns_reading.read_whole, self, self.session.paths)
        elif self.reading:
            self.call_after_refresh(turns_reading.read_files, self, paths, self._large)
        self._clock = self.set_interval(PROGRESS, self._progress, pause=not self.reading)
        table_growth.watch(self)
        self.count()

    def on_resize(self) -> None:
        """Sets the height of a row's details by the height of the screen."""
        self.query_one(TurnAbout).styles.height = SMALL_ABOUT if self.app.size.height < TALL else LARGE_ABOUT

    # -- reading -------------------------------------------------------------------------------------------------

    def take_whole(self, read: OpenSession, rows: list[TurnRow], widest: Mapping[str, int]) -> None:
        """Replaces the first rows of a file by all of them."""
        gc.freeze()  # as after the first frame: the rows live on, and need no collection
        self.session, self.begun = read, False
        self.turn_list.set_rows(read.paths[0], rows, widest)
        self.finish()

    def _progress(self) -> None:
        """Lists waiting rows, because a large file may delay the next ones, and shows the progress."""
        if not self.reading:
            self._clock.pause()
        elif self.is_attached:
            turns_reading.list_grown(self)
            self.say_counts()

    def take(self, batch: Sequence[turns_reading.MeasuredRows], count: int, total: int) -> None:
        """Adds rows; lists them as often as possible without delaying keys."""
        for slot, rows, widest in batch:
            self.turn_list.set_rows(slot, rows, widest)
        self._large = [path for path in self._large if self.turn_list.slots[path][0].why == LARGE]
        self.read, self.total = count, total
        self.has_more = True
        if batch and self.note == NOTHING_YET:
            self.note = ""
        turns_reading.list_grown(self)

    def finish(self) -> None:
        """Sorts and counts the rows after everything is read."""
        searched = self._searching
        self.reading = self._searching = False
        if not self.is_attached:
            return
        if self.named:
            self.turn_list.sort = self.turn_list.sort or "verdict"

        def then() -> None:
            if self._needle and self._match is None:
                self._find(1, again=False)
            if self._needle and self._large and not searched:
                self._read_large()

        turns_reading.list_all(self, then)
        self.post_message(TurnsRead([row for row in self.turn_list.rows if row.verdict is None],
                                    any(row.verdict is not None for row in self.turn_list.rows)))

    def count(self) -> None:
        """Counts the rows again, and shows the counts."""
        self.counts = count_apart(self.turn_list, self.turn_list.rows)
        self.say_counts()

    def say_counts(self) -> None:
        """Shows the counts of turns and verdicts, the progress of reading, and the current row."""
        progress = None
        if self.begun and self.session is not None:
            progress = turns_reading.progress_within(self.session.paths[0])
        elif self.reading:
            path, *_ = intake.progress()
            within = f" {turns_reading.share_of(path)}" if intake.heavy([path]) else ""
            progress = f"{turns_reading.progress_over(self)}…{within}"
        self.query_one(TurnCounts).groups = count_groups(self.counts, progress, self.turn_list)
        self.query_one(TurnHeading).redraw_changes()
        self.query_one(TurnAbout).follow()

    def sort_by(self, name: str) -> None:
        """Sorts by a column; by the same column again, in reverse. The cursor stays on its row if it was chosen."""
        self.turn_list.reverse = name == self.turn_list.sort and not self.turn_list.reverse
        self.turn_list.sort = name
        before, self.note = self.turn_list.current_row, messages.SORTING

        def then() -> None:
            self.note = "" if self.note == messages.SORTING else self.note
            if self.turn_list.current_row is before:  # else a search has moved the cursor meanwhile
                self.turn_list.show_first()

        turns_reading.list_all(self, then, "order")

    # -- keys ----------------------------------------------------------------------------------------------------

    @on(RowOpened)
    def _open_row(self) -> None:
        self.action_open_at("")

    def action_open_at(self, tab: str, action: str = "") -> None:
        """Opens the turn of the current row, at a tab if one is named, and runs an action of its screen."""
        row = self.turn_list.current_row
        if row is None:
            self.note = NO_MATCH_NOTE if self.turn_list.filter is not None else (
                NOTHING_YET if self.reading else "nothing is listed")
            return
        if row.verdict is None and row.why not in (PENDING, LARGE):
            self.note = f"not read: {row.why}"
            return
        if self.turn_list.by_file and self._match is not None and self._match.session == row.session:
            row = self._match
        section = self.turn_list.section_of.get(row.paths[0])
        remember = self.sections[section].remember if section is not None else self.named and bool(self.sections)
        if self.reading and self.named and not self.begun:
            self.note = OPENED_EARLY
        self.post_message(TurnWanted(row, self.session, remember, tab, action))

    def action_sort(self) -> None:
        """Asks for a column."""
        names = [column.name for column in self.turn_list.columns_now]
        start = names.index(self.turn_list.sort) if self.turn_list.sort in names else 0
        again = "" if self.turn_list.reverse else self.turn_list.sort  # chosen again, this column reverses the order
        lines = [(name, f"{'enter reverses: ' * (name == again)}{SORTS.get(name, '')}") for name in names]
        ask_operator(self.app, Choose("Sort by", lines, start), self.sort_by)

    def action_by_file(self) -> None:
        """Switches between one row per session and one per turn."""
        self.turn_list.regroup()
        self.say_counts()
        self.note = "one row per session, by its worst turn" if self.turn_list.by_file else "one row per turn"

    def action_attention(self) -> None:
        """Goes to the next row that needs attention, the worst first; after the last it returns to the first."""
        found, noun = attention_rows(self.turn_list)
        place = place_after(found, self.turn_list.cursor) if found else 0
        self.turn_list.cursor = found[place] if found else self.turn_list.cursor
        self.note = attention_note(place, len(found), noun) if found else f"no {noun} that is listed needs attention"

    def action_go_to(self) -> None:
        """Asks for a row."""
        from inspector.tui.command_line import go_to_row

        go_to_row(self.turn_list)

    def action_filter(self) -> None:
        """Asks for a filter, applied while it is typed."""
        from inspector.tui.questions import FilterPrompt

        before = self.turn_list.filter
        text = before.text if before is not None else self._last

        def done(text: str | None) -> None:
            message = turns_reading.narrow(self, (before.text if before is not None else "") if text is None else text)
            if text and (message == messages.FILTERING or not self.turn_list.listing.matching_rows):
                self.note = message

        self.app.push_screen(
            FilterPrompt(text, partial(turns_reading.narrow, self), "an empty filter shows all turns"), done)

    def close_open(self) -> bool:
        """Gives up a view over all files, else removes the filter; returns whether there was either."""
        if turns_reading.gives_up(self):
            return True
        if self.turn_list.filter is None:
            return False
        self._last = self.turn_list.filter.text
        self.note = f"{turns_reading.narrow(self, '')} · f offers the filter again"
        return True

    def action_search(self) -> None:
        """Asks for a search text."""
        from inspector.tui.questions import Prompt

        prompt = Prompt("search", "text of messages, answers, arguments, names", self._needle)
        ask_operator(self.app, prompt, self._search)

    def _search(self, text: str) -> None:
        if text:
            self._needle = text
            self._find(1, again=False)
            if self._large and not self.reading:
                self._read_large()

    def _read_large(self) -> None:
        """Reads the large files, so that a search looks through them too."""
        self.reading, self._searching, self.read, self.total = True, True, 0, len(self._large)
        turns_reading.read_files(self, self._large)
        self._clock.resume()
        self.note += f" · {count_of(self.total, 'large file')} to search, c stops"
        self.say_counts()

    def action_again(self, by: int) -> None:
        """Goes to the next or previous match."""
        if not self._needle:
            self.note = NOT_SEARCHED
        else:
            self._find(by, again=True)

    def _find(self, by: int, again: bool) -> None:
        """Moves the cursor to the next match; on a session's row, enter then opens the turn with the text."""
        needle, entries = in_quotes(self._needle), self.turn_list.entries

        def show(found: tuple[int, TurnRow] | None) -> None:
            if self.turn_list.entries is not entries:
                self._find(by, again)  # other rows were listed while a thread searched
                return
            self._match = found and found[1]
            if found is None:
                self.note = f"{needle} is in no turn that is listed"
                return
            alone = again and found[0] == self.turn_list.cursor
            self.turn_list.cursor = found[0]
            number = found[1].number if self.turn_list.by_file else 0
            turn = f"turn {number:,}, which enter opens" if number else "this turn"
            others = "no other row has it" if alone else "n the next, N the previous one"
            self.note = f"{needle} is in {turn} · {others}"

        turns_reading.work_behind(self, self.turn_list.finder(self._needle, by, again), show, "find")

    def action_stop(self) -> None:
        """Stops reading; the rows so far stay."""
        if not self.reading or self.begun:
            self.note = "nothing is being read"
            return
        self.workers.cancel_group(self, "default")  # not a filter, nor an export
        self.reading = self._searching = False
        self.turn_list.relist()
        self.count()
        self.note = f"stopped: {self.read:,} of {self.total:,} files are read; enter opens another"

    def action_path(self) -> None:
        """Asks for a path."""
        from inspector.tui.questions import PathSuggester, Prompt

        def refusal(text: str) -> str:
            return why_unopenable(os.path.expanduser(text.strip())) if text.strip() else ""

        words = PathSuggester(why_unopenable)
        prompt = Prompt("open", "a file or folder · tab completes", words=words, refusal=refusal)
        ask_operator(self.app, prompt, self._open_path)

    def _open_path(self, text: str) -> None:
        if text.strip():
            self.post_message(PathWanted(os.path.expanduser(text.strip())))

    def action_over_all(self, view: str) -> None:
        """Opens a view over all files, as one session; over the row's session if this program found the files."""
        if self.session is None and not self.named:
            self.action_open_at("", view)
        else:
            turns_reading.open_over_all(self, view)

    def action_copy(self) -> None:
        """Copies the command line that prints the same table."""
        self.note = copy_text(self.app, turns_reading.command_of(self))

    def action_export(self) -> None:
        """Exports the listed rows."""
        rows = [row for row in self.turn_list.entries if isinstance(row, TurnRow)]

        def make(folder: str) -> None:
            self.note = "making turns.csv…"
            turns_reading.work_behind(self, lambda: turn_table.table(time.time()).csv(rows), lambda text: deliver(
                self, lambda: {"turns.csv": text}, "turns.csv", folder), "export")

        ask_folder(self.app, "turns.csv", make)
