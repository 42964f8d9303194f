"""Records the sample sessions of a real model: `python tests/samples/record.py http://127.0.0.1:8099 FOLDER`.

The server is any llama.cpp HTTP server on loopback with a small instruction model. Every byte is kept as it came, with
its time; nothing is edited afterwards. Run again, the texts may differ: the committed files are what one run gave.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from inspector.sessions.native import SessionWriter

MODEL = "smollm2-135m-instruct"
PROVENANCE = "recorded on loopback from SmolLM2-135M-Instruct (Q4_1) under llama.cpp's HTTP server, temperature 0"


class Recorder:
    """Sends requests one after the other and writes both sides of each into one session."""

    def __init__(self, base: str, path: Path, **about: str) -> None:
        self.base, self.count = base, 0
        path.unlink(missing_ok=True)
        self.writer = SessionWriter(path, provenance=PROVENANCE, **about)

    def ask(self, api: str, path: str, body: dict) -> bytes:
        """One exchange; returns the response body."""
        self.count += 1
        key = f"r{self.count}"
        url = self.base + path
        headers = [("Content-Type", "application/json"), ("Accept", "text/event-stream")]
        self.writer.append({"type": "request", "id": key, "api": api, "method": "POST", "url": url,
                            "headers": headers, "body": body})
        connection = http.client.HTTPConnection(urlsplit(self.base).netloc, timeout=300)
        began = time.perf_counter()
        connection.request("POST", path, json.dumps(body), dict(headers))
        response = connection.getresponse()
        kept = [(name, value) for name, value in response.getheaders() if name.lower() in ("content-type", "server")]
        self.writer.append({"type": "response", "request": key, "status": response.status, "headers": kept})
        received = b""
        while piece := response.read1(65536):
            self.writer.append_bytes(key, piece, ms=round((time.perf_counter() - began) * 1000, 1))
            received += piece
        took = round((time.perf_counter() - began) * 1000, 1)
        self.writer.append({"type": "end", "request": key, "end": "eof", "ms": took})
        connection.close()
        return received


def text_of(body: bytes) -> str:
    """The text of a chat stream."""
    found = []
    for line in body.decode().splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:]).get("choices", ()):
                found.append(choice["delta"].get("content") or "")
    return "".join(found)


def record_chat(base: str, path: Path, prompt: str, cap: int, most: int, **about: str) -> None:
    """A chat whose answer is cut at `cap` tokens and continued by prefill, at most `most` times."""
    recorder = Recorder(base, path, **about)
    asked = [{"role": "user", "content": prompt}]
    answer = ""
    for _ in range(most + 1):
        said = [{"role": "assistant", "content": answer}] if answer else []
        body = recorder.ask("openai_chat", "/v1/chat/completions", {
            "model": MODEL, "messages": [*asked, *said], "max_tokens": cap, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True},
        })
        answer += text_of(body)
        if b'"finish_reason":"length"' not in body:
            return


def live(
    base: str, path: Path, api: str, model: str, cap: int, asked: dict, *options: str, provenance: str, **about: str
) -> None:
    """A turn that `inspector run` drives: its requests, continuations and settings are the engine's own.

    Only what the file says of itself is put in the place of what a run says: its first record, and its last.
    """
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as place:
        messages = Path(place) / "ask.json"
        messages.write_text(json.dumps(asked), "utf-8")
        subprocess.run(
            [sys.executable, "-m", "inspector", "run", "--api", api, "--model", model, "--base-url", base, *options,
             "--messages", str(messages), "--set", f"max_tokens={cap}", "--record", str(path)],
            check=True, stdout=subprocess.DEVNULL)
    header, *records, _end = path.read_text(encoding="utf-8").splitlines()
    said = {**json.loads(header), **about, "provenance": f"{provenance}, by `inspector run`"}
    kept = [json.dumps(said, ensure_ascii=False), *records]
    path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")


def continued_live(base: str, folder: Path) -> None:
    """A continuation that the engine asked for."""
    said = {"messages": [{"role": "user", "content": "Describe the water cycle in a few sentences."}], "temperature": 0}
    live(
        base, folder / "20-live-continuation.session.jsonl", "anthropic_messages", MODEL, 16, said,
        "--profile", "llama_cpp", provenance=PROVENANCE,
        title="A live turn, continued twice (a real model)",
        story="The engine asked by itself: each answer is cut at 16 tokens, the text goes back as a prefill, and the "
        "third answer ends. Its words and times are what came.",
        end_state="Complete, completed",
    )


def repaired_live(folder: Path) -> None:
    """A repair that the engine asked for; the small model does not do as `tool_choice` says, the scripted one does."""
    from inspector.provider import serving

    with serving("cut-call") as provider, tempfile.TemporaryDirectory() as place:
        (story,) = provider.stories
        tools = Path(place) / "tools.json"
        printed = subprocess.run([sys.executable, "-m", "inspector", "provider", "--tools", "cut-call"],
                                 check=True, capture_output=True)
        tools.write_bytes(printed.stdout)
        live(
            provider.url, folder / "21-live-repair.session.jsonl", "openai_chat", "cut-call", 64,
            {"messages": [{"role": "user", "content": story.prompt}]}, "--tools", str(tools),
            provenance="recorded on loopback from the scripted provider (`inspector provider cut-call`)",
            title="A live turn, its call cut, asked for again and run (a scripted provider)",
            story="The first answer is cut inside write_file's arguments, so the call is held; the engine asks for it "
            "again, alone and with the tool forced, gets it whole, runs it and is told that the report is there.",
            end_state="Complete, completed",
        )


def main(base: str, folder: Path) -> None:
    """Records all of them."""
    record_chat(
        base, folder / "02-text-cut-twice.session.jsonl", "Explain in three sentences how a lighthouse works.", 56, 3,
        title="Text cut twice and completed (a real model)",
        story="max_tokens is 56; the answer is cut twice, continued by prefill each time, and ends by itself.",
        end_state="Complete, completed",
    )
    record_chat(
        base, folder / "03-attempts-exhausted.session.jsonl", "Describe how bread is made, step by step.", 24, 3,
        title="Attempts exhausted (a real model)",
        story="max_tokens is 24; three continuations are not enough, and the agent stops with a part of the answer.",
        end_state="AbortPartial, retry_limit",
    )
    recorder = Recorder(
        base, folder / "16-completed-at-the-cap.session.jsonl",
        title="A server that says completed at the cap (a real model)",
        story="The Responses endpoint of llama.cpp says completed although the answer was cut at max_output_tokens; "
        "the usage tells.",
        end_state="Unrecorded, unrecorded",
    )
    recorder.ask("openai_responses", "/v1/responses", {
        "model": MODEL, "input": "List the parts of a sailing boat and say what each is for.",
        "max_output_tokens": 32, "temperature": 0, "stream": True,
    })
    continued_live(base, folder)
    repaired_live(folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
