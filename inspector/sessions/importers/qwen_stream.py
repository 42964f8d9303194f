"""The output of `qwen --output-format stream-json`, and of `json` as one list: rows like those of `claude -p`.

Every `stop_reason` is null, and the outcome is `success` also after a failure, whose message is at the end of the text,
in brackets. Source: outputs of Qwen Code 0.15.10 for answers of a scripted provider.
"""

from __future__ import annotations

from typing import Any

from inspector.sessions.importers.claude_code import Session, path_of_rows
from inspector.sessions.importers.records import first_look
from inspector.sessions.recording import Options
from inspector.sessions.transcripts.answer import TranscriptAnswer, TranscriptLine, TreePlace
from inspector.sessions.transcripts.member_values import objects_of
from loop_core.values import TextPart

_FAILED = "[API Error: "
ADVICE = ("Please wait and try again later.", "Possible quota limitations in place ")
"""The beginnings of the line that Qwen Code adds after the message of a rate limit (`utils/errorParsing.ts`)."""


def sniff(head: bytes, path: str) -> int:
    """Recognises the first row of a run, which names the version of Qwen Code."""
    look = first_look(head)
    return 100 if any("qwen_code_version" in row for row in (*look.objects, *objects_of(look.first)[:1])) else 0


def reader(path: str, options: Options, head: bytes) -> Session:
    """The reader of one file, of lines or of one list."""
    return _QwenStream(path, options, path_of_rows(head))


class _QwenStream(Session):
    name, agent = "qwen-stream", "Qwen Code"
    several_apis = True

    def begin(self, name: str, api: str | None, model: Any, place: TreePlace, line: TranscriptLine) -> TranscriptAnswer:
        """Makes an answer that begins at a row. No row names a wire format: all answers have the same shape."""
        return super().begin(name, None, model, place, line)

    def settle(self) -> None:
        """Also reads the message of a failure at the end of a text."""
        for answer in self.answers:
            last = answer.parts[-1] if answer.parts else None
            said = last.text.rstrip() if isinstance(last, TextPart) else ""
            before, _, line = said.rpartition("\n")
            text, mark, why = (before if line.startswith(ADVICE) else said).rpartition(_FAILED)
            if mark and why.endswith("]"):
                answer.parts[-1:] = [TextPart(text)] if text else []
                answer.fail(why[:-1], answer.word_at._replace(pointer=""))
        super().settle()
