"""Chats of aider: `.aider.chat.history.md` of a project, and the log of its option `--llm-history-file`.

Neither has a stop word. In a chat, aider marks the lines of the user (`####`) and its own (`>`), and ends both with two
spaces; the rest is the text of the model. If aider asks for the rest of a cut text, the chat has all pieces as one
text; in the log each is an answer, and the request for the rest ends with the text so far. Source: aider 0.86.2
`io.py`, `utils.py`, `reasoning_tags.py`, `coders/base_coder.py`; chats and logs that it wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar

from inspector.sessions.importers.records import Piece
from inspector.sessions.reasons import recorder_reason
from inspector.sessions.recording import FileReading, Options
from inspector.sessions.transcripts import Fields, TranscriptRows
from inspector.sessions.transcripts.answer import InterimRow, TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.chat_messages import ChatReader
from loop_core.values import Stop

LIMIT = "has hit a token limit!"
LIMITS: Mapping[bool, Stop] = {True: Stop.MAX_TOKENS, False: Stop.INTERRUPTED}
"""Whether there was a text before aider reported a limit -> the stop reason. Without a text, the limit may also be that
of the context, or be spent on reasoning."""
QUESTIONS = ("/ask ", "/code ", "/architect ", "/context ", "/help ")
"""The commands whose text is sent to the model; any other command is only for aider."""
INTERRUPTED = "I see that you interrupted my previous reply."
"""The text that aider writes in the role of the model after an answer that the user interrupted."""
_CAME = re.compile(r"Empty response received from LLM\.|Tokens: .+ received\.")
"""Matches a line of aider that shows that an answer arrived, even one without text."""
_STOPPED = "^C again to exit"
_MODEL = re.compile(r"(?:Main m|M)odel: (?P<name>\S+) with ")
_FAILED = re.compile(r"litellm\.(?P<kind>\w+): ")
_OWN = re.compile(rf"^(?:{_CAME.pattern}|{_FAILED.pattern}|Model .+ {LIMIT}|Retrying in |Traceback \(|\^C "
                 r"|Applied edit to |.*\(Y\)es/\(N\)o)", re.MULTILINE)
"""Matches a line that distinguishes aider's lines after a text from lines that the model quotes."""
_THOUGHT = re.compile(r"<(?P<tag>thinking-content-\w+)>\n(?P<text>.*?)(?:\n</(?P=tag)>\n|\Z)", re.DOTALL)
_BEGINS = rb"(?P<session># aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*)|(?P<user>####(?: .*)?"
_COST = rb"Cost: \$\S+ message, \$\S+ session\..*\s*"
# A report of tokens and cost may have two lines, of which only the last ends with two spaces.
_LINE = re.compile(_BEGINS + rb"  [\r\n]*)|(?P<note>>(?: .*)?  [\r\n]*|> Tokens: .+ received\.\s*|" + _COST + rb")")
_BARE = re.compile(_BEGINS + rb"\s*)|(?P<note>>(?: .*)?\s*|" + _COST + rb")")
"""Matches the same lines in a chat in which a formatter removed the spaces at the ends of lines."""
_STRIPPED = re.compile(
    rb"^(?:> Tokens: .+ session\.|> Applied edit to .*\S|Cost: \$.+ session\..*\S)\r?$", re.MULTILINE)
"""Matches a line of aider that shows that such spaces were removed."""
_LOGGED = re.compile(rb"(?:(?P<request>TO LLM)|(?P<response>LLM RESPONSE)) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\s*")
_MARK = re.compile(r"^(?:#### ?|> ?|# aider chat started at )", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"


def sniff(head: bytes, path: str) -> int:
    """Recognises the first line of a session, or of a request with its first message."""
    first, _, rest = head.removeprefix(_BOM).lstrip().partition(b"\n")
    begins = _LINE.fullmatch(first)
    chat = begins is not None and begins.lastgroup == "session"
    return 100 if chat or (_LOGGED.fullmatch(first) and rest.startswith((b"-------", b"ASSISTANT "))) else 0


def read(data: bytes, path: str, options: Options) -> FileReading:
    """Reads every answer of a chat or of a log."""
    text = data.removeprefix(_BOM)
    if _LOGGED.match(text.lstrip()):
        return _Log(path, options).read_rows(_LogBlocks(_log_blocks(text), {}))
    return _Chat(path, options).read_rows(_ChatBlocks(text))


# -- The chat ---------------------------------------------------------------------------------------------------------

_Line = tuple[int, bytes]


def _kinds(lines: list[bytes], bare: bool) -> Iterator[str]:
    """The kind of each line. Aider's lines follow each other without an empty line, and a message of several lines,
    such as commands or an edit that failed, has a mark before its first line and two spaces after its last."""
    pattern = _BARE if bare else _LINE
    above, within = "", False
    for line in lines:
        found = pattern.fullmatch(line)
        kind = (found and found.lastgroup) or "text"
        ended = bool(line.strip()) and line.rstrip(b"\r\n").endswith(b"  ")
        opens = line.startswith(b"> ")
        # an answer comes after an empty line, so a mark right below the user's line is aider's
        if kind == "text" and (within or (above == "note" and line.strip()) or (above == "user" and opens)):
            within = not ended and not bare and (within or opens)
            kind = "note"
        else:
            within = False
        above = kind
        yield kind


def _chat_blocks(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """The kind, the number of the first line, and the text of each block: a line of aider, or consecutive lines of the
    user or of the model."""
    lines = data.splitlines(keepends=True)
    ends = [line.rstrip(b"\r\n").endswith(b"  ") for line in lines if line.startswith(b"#### ")]
    bare = 2 * sum(ends) < len(ends) and _STRIPPED.search(data) is not None
    marked = zip(_kinds(lines, bare), enumerate(lines, 1), strict=True)
    runs = [(kind, [line for _, line in run]) for kind, run in groupby(marked, lambda each: each[0])]
    kinds = ["text" if _is_quote(runs, at, bare) else kind for at, (kind, _) in enumerate(runs)]
    for kind, group in groupby(zip(kinds, runs, strict=True), lambda each: each[0]):
        block = [line for _, (_, run) in group for line in run]
        for part in [[line] for line in block] if kind == "note" else [block]:
            filled = _without_blank_ends(part)
            if filled:
                yield kind, filled[0][0], b"".join(line for _, line in filled).rstrip(b"\r\n")


def _without_blank_ends(lines: list[_Line]) -> list[_Line]:
    filled = [at for at, (_, line) in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _is_quote(runs: list[tuple[str, list[_Line]]], at: int, bare: bool) -> bool:
    """Whether lines that look like aider's are in the middle of a text of the model or, if the chat is `bare`, lines
    like the user's are a heading below such a text: aider writes lines of its own before it asks the user."""
    def has_text(place: int) -> bool:
        return 0 <= place < len(runs) and runs[place][0] == "text" and bool(_without_blank_ends(runs[place][1]))

    kind, lines = runs[at]
    if kind == "user" and bare:
        return has_text(at - 1)
    if kind != "note" or _OWN.search(_text(b"".join(line for _, line in lines))):
        return False
    begins = has_text(at - 1) or [kind for kind, _ in runs[max(0, at - 2) : at]] == ["user", "text"]
    return begins and (has_text(at + 1) or [kind for kind, _ in runs[at + 1 : at + 3]] == ["text", "note"])


def _text(data: bytes) -> str:
    """The text of aider's or the user's lines, without their marks."""
    return _MARK.sub("", data.decode("utf-8", "replace").replace("\r\n", "\n").replace("  \n", "\n"))


class _ChatBlocks(TranscriptRows):
    def __init__(self, data: bytes) -> None:
        blocks = [*_chat_blocks(data)]
        super().__init__([(number, piece, False) for _, number, piece in blocks], {})
        self.kinds = {number: kind for kind, number, _ in blocks}

    def _parse(self, piece: bytes, number: int, last: bool) -> dict[str, Any]:
        kind = self.kinds[number]
        return {"kind": kind, "text": piece.decode("utf-8", "replace") if kind == "text" else _text(piece).rstrip()}


class _Aider(ChatReader):
    name, agent, unit = "aider", "aider", "line"
    fields: ClassVar[Fields] = {}
    row_word = ("a line", "lines")
    several_apis = False

    def write(self, line: TranscriptLine, place: TreePlace, text: str) -> TranscriptAnswer:
        """Adds an answer with this text. Aider marks no answer as complete, so a later message is no evidence of its
        end."""
        answer = self.answer(line, place)
        answer.word_at, answer.unended = answer.take(line), True
        thought = _THOUGHT.match(text)
        answer.add_thought(thought and thought["text"].strip())
        answer.add_text(text[thought.end() :].lstrip("\n") if thought else text)
        return answer


class _Chat(_Aider):
    stopped = False
    """Whether the last line reports that the user pressed Ctrl-C, which interrupted an answer directly after it."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        kind, text = line.value["kind"], line.value["text"]
        stopped, self.stopped = self.stopped, text == _STOPPED
        if kind == "session":
            self.session, self.model = text, None
            return TreePlace(None)
        if kind == "note":
            return self._note(line, text, place)
        if kind == "user":
            if stopped:
                self.count_stopped(place)
            return self.say(line, place, text, own=text.startswith(("/", "!")) and not text.startswith(QUESTIONS))
        answer = self.write(line, place, text)
        if stopped:
            answer.after.append(InterimRow(line.number - 1, text, mark="interrupted"))
        return TreePlace(answer)

    def _note(self, line: TranscriptLine, text: str, place: TreePlace) -> TreePlace:
        """Reads a line of aider about the end of the answer right above it, or of an answer without text."""
        model, failed = _MODEL.match(text), _FAILED.match(text)
        self.model = model["name"] if model else self.model
        above = place.right_above
        if above is not None and above.stop is not None:
            above, place = None, TreePlace(above)
            if not failed:
                return place  # more about the same end
        if failed or text.endswith(LIMIT):
            answer = above or self.answer(line, place)
            at = answer.take(line)
            if failed:
                answer.fail(text, at, kind=failed["kind"])
            else:
                stop = LIMITS[bool(answer.text)]
                answer.stop = recorder_reason(stop, None, at, LIMIT, "aider.limits")
            return TreePlace(answer)
        if above is None and _CAME.match(text) and place.has_user_message:
            return TreePlace(self.write(line, place, ""))
        return self.say(line, place, text, own=True) if text else place


# -- The log ----------------------------------------------------------------------------------------------------------


def _log_blocks(data: bytes) -> Iterator[Piece]:
    """The requests and the answers of a log. Each line of a message begins with its role."""
    block: list[bytes] = []
    number = 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        if _LOGGED.fullmatch(line) and block:
            yield number - len(block), b"".join(block).rstrip(b"\r\n"), False
            block = []
        block.append(line)
    yield number + 1 - len(block), b"".join(block).rstrip(b"\r\n"), True


class _LogBlocks(TranscriptRows):
    def _parse(self, piece: bytes, number: int, last: bool) -> dict[str, Any]:
        head, *lines = piece.decode("utf-8", "replace").splitlines() or [""]
        messages: list[tuple[str, str]] = []
        for role, group in groupby(lines, lambda line: line.partition(" ")[0]):
            messages.append((role, "\n".join(line[len(role) + 1 :] for line in group)))
        found = _LOGGED.match(head.encode())
        return {"kind": found and found.lastgroup, "time": head.rpartition(" ")[2],
                "messages": [each for each in messages if each[0] != "-------"]}


class _Log(_Aider):
    last_request: tuple[list[tuple[str, str]], str] = ([], "")
    """The messages and the time of the last request."""

    def take(self, line: TranscriptLine, lines: TranscriptRows, place: TreePlace) -> TreePlace:
        kind, messages, time = (line.value[name] for name in ("kind", "messages", "time"))
        if kind == "response":
            answer = self.write(line, place, "\n".join(text for _, text in messages))
            answer.started = self.last_request[1] or None
            return TreePlace(answer)
        before, self.last_request = self.last_request[0], (messages, time)
        if kind != "request":
            lines.count("text before the first request", frozenset())
            return place
        above = place.right_above
        if above is not None and messages == before:
            return above.above  # sent again: the end of the answer is unknown
        at = next((at for at in range(len(messages), 0, -1) if messages[at - 1][0] == "ASSISTANT"), 0)
        said = messages[at - 1][1] if at else ""
        if above is not None and at == len(messages) and above.text.rstrip() and said.endswith(above.text.rstrip()):
            return self.say(line, place, "aider asks for the rest: its next request ends with this answer", mark="cap")
        if said == INTERRUPTED:
            place = self.say(line, place, said, mark="interrupted")
        return self.say(line, place, "\n".join(text for _, text in messages[at:]))
