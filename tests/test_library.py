"""The engine as a library: its names, used as somebody who embeds it uses them."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import pkgutil
import pydoc
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import loop_core
from inspector import provider
from loop_core.client.address import Server
from loop_core.client.exchange import Connection, Retries
from tests.scenes.rows import each_row

ROOT = Path(__file__).resolve().parent.parent
FOLDERS_TO_COME = {"values", "errors", "wire", "judge", "turn", "client"}
BODY = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}'


def request() -> loop_core.Request:
    return loop_core.decode_request("openai_chat", {"model": "m", "messages": [{"role": "user", "content": "hello"}]})


def response() -> loop_core.ChatResponse:
    return loop_core.decode_response("openai_chat", BODY)


def begin() -> tuple[Any, Any]:
    return loop_core.begin("t1", request())


class Source:
    """Answers every request with the same body."""

    def respond(self, send: loop_core.Send, turn: Any) -> Any:
        return loop_core.read("openai_chat", BODY, request=turn.request).event

    def run_tools(self, effect: loop_core.RunTools, turn: Any) -> Any:
        return loop_core.Toolbox().run(effect, turn)

    def follow_up(self, turn: Any) -> tuple[loop_core.Message, ...]:
        return ()


def run_turn() -> loop_core.Trace:
    return loop_core.run("t1", request(), Source())


def limits_error() -> str:
    try:
        loop_core.Limits(continuation_max_attempts=-1)
    except loop_core.LoopError as why:
        return str(why)
    return ""


async def run_async() -> loop_core.Trace:
    class AsyncSource:
        async def respond(self, send: loop_core.Send, turn: Any) -> Any:
            return Source().respond(send, turn)

        async def run_tools(self, effect: loop_core.RunTools, turn: Any) -> Any:
            raise AssertionError("nothing was called")

        async def follow_up(self, turn: Any) -> tuple[loop_core.Message, ...]:
            return ()

    return await loop_core.arun("t1", request(), AsyncSource())


def result_of(make: Callable[[], Any]) -> Any:
    """What a coroutine returns that waits for nothing."""
    try:
        make().send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


AT_ONCE: dict[str, Any] = {"line": Connection(retries=Retries(most=0))}
NOBODY = Server("openai_chat", "http://127.0.0.1:9", model="m")
"""Port 9 of this machine, where nothing listens."""


def open_live() -> int:
    with loop_core.Live(NOBODY) as source:
        return source.request_count


async def open_async() -> int:
    async with loop_core.AsyncLive(NOBODY) as source:
        return source.request_count


def http_send() -> Any:
    turn, (send,) = begin()
    return loop_core.http_request(NOBODY, turn, send)


def count_requests() -> int:
    """The number of requests that an observer saw."""
    seen: list[object] = []

    class Watch(loop_core.Observer):
        def on_request(self, ask: object) -> None:
            seen.append(ask)

    loop_core.ask(NOBODY, "hello", observer=Watch(), **AT_ONCE)
    return len(seen)


async def apieces() -> list[str]:
    return [piece async for piece in loop_core.astream(NOBODY, "hello", **AT_ONCE)]


USES: Mapping[str, Callable[[], object]] = {
    "Answer": lambda: isinstance(loop_core.ask(NOBODY, "hello", **AT_ONCE), loop_core.Answer),
    "AsyncLive": lambda: asyncio.run(open_async()) == 0,
    "ChatResponse": lambda: loop_core.ChatResponse("openai_chat").text is None,
    "Connection": lambda: loop_core.Connection(loop_core.Timeouts(silence=3)).timeouts.silence == 3,
    "Limits": lambda: loop_core.Limits(max_tool_steps=3).max_tool_steps == 3,
    "Live": lambda: open_live() == 0,
    "LoopError": lambda: "continuation_max_attempts" in limits_error(),
    "Message": lambda: loop_core.Message("user").text == "",
    "Observer": lambda: count_requests() == 1,
    "Plan": lambda: loop_core.Plan(policy=loop_core.preset("strict")).policy.name == "strict",
    "Policy": lambda: isinstance(loop_core.preset("zoo-after"), loop_core.Policy),
    "Reading": lambda: isinstance(loop_core.read("openai_chat", BODY), loop_core.Reading),
    "Request": lambda: loop_core.Request("openai_chat", model="m").model == "m",
    "Retries": lambda: loop_core.Retries(most=1).most == 1,
    "RunTools": lambda: loop_core.RunTools(()).batch == (),
    "Send": lambda: isinstance(begin()[1][0], loop_core.Send),
    "Server": lambda: loop_core.Server("openai_chat", "http://127.0.0.1:1").api == "openai_chat",
    "Stop": lambda: loop_core.Stop.MAX_TOKENS == "max_tokens",
    "Timeouts": lambda: loop_core.Timeouts().silence == 120,
    "ToolError": lambda: issubclass(loop_core.ToolError, loop_core.LoopError),
    "Toolbox": lambda: loop_core.Toolbox({}).tools == {},
    "Trace": lambda: isinstance(run_turn(), loop_core.Trace),
    "Verdict": lambda: inspect.isclass(loop_core.Verdict),
    "aask": lambda: asyncio.run(loop_core.aask(NOBODY, "hello", **AT_ONCE)).text == "",
    "arun": lambda: result_of(run_async).steps[-1].turn.terminal == "completed",
    "ask": lambda: loop_core.ask(NOBODY, "hello", **AT_ONCE).terminal != "completed",
    "astream": lambda: asyncio.run(apieces()) == [],
    "begin": lambda: begin()[0].state == "Request",
    "decode": lambda: loop_core.decode("openai_chat", BODY).text == "hi",
    "decode_request": lambda: request().model == "m",
    "decode_response": lambda: response().text == "hi",
    "decoder": lambda: loop_core.decoder("openai_chat").close().text is None,
    "encode_request": lambda: loop_core.encode_request("openai_chat", request())["model"] == "m",
    "encode_response": lambda: b"".join(loop_core.encode_response("openai_chat", response())).startswith(b"{"),
    "http_request": lambda: http_send().method == "POST" and http_send().url.endswith(":9/v1/chat/completions"),
    "preset": lambda: loop_core.preset("strict").name == "strict",
    "read": lambda: loop_core.read("openai_chat", BODY).stop_reason == "end_turn",
    "run": lambda: run_turn().steps[-1].turn.terminal == "completed",
    "step": lambda: loop_core.step(begin()[0], Source().respond(begin()[1][0], begin()[0]))[0].state == "EvaluateStop",
    "stream": lambda: list(loop_core.stream(NOBODY, "hello", **AT_ONCE)) == [],
}
"""Public name -> a use of it that is true where it works."""


@pytest.fixture(scope="module")
def _every_submodule() -> None:
    for module in pkgutil.walk_packages(loop_core.__path__, "loop_core."):
        importlib.import_module(module.name)


@pytest.mark.usefixtures("_every_submodule")
@pytest.mark.parametrize("name", loop_core.__all__)
def test_every_name_works_and_works_again(name: str) -> None:
    first = getattr(loop_core, name)
    assert USES[name]()
    assert not isinstance(first, ModuleType)
    assert getattr(loop_core, name) is first
    assert USES[name]()


def test_the_names_are_those_that_are_used_here() -> None:
    assert list(USES) == sorted(loop_core.__all__)
    assert len(loop_core.__all__) <= 40


def test_no_name_is_that_of_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(loop_core.__path__)}
    assert modules & set(loop_core.__all__) == set()
    assert set(loop_core.__all__) & FOLDERS_TO_COME == set()


@each_row("name", loop_core.__all__)
def test_every_name_is_documented_and_has_a_signature(name: str) -> None:
    value = getattr(loop_core, name)
    assert inspect.getdoc(value)
    if name not in ("Event", "Stop", "LoopError", "ToolError", "TransportEnd"):
        parameters = inspect.signature(value).parameters
        assert {"given", "args", "kwargs"} & set(parameters) == set(), "the real one"


def test_help_shows_what_is_given_and_not_what_is_inside() -> None:
    told = pydoc.render_doc(loop_core, renderer=pydoc.plaintext)
    on_one_line = " ".join(told.split()).replace("( ", "(")  # Python 3.13 writes a parameter a line
    assert "ask(server: 'Server', prompt: 'Prompt', *, tools:" in on_one_line
    assert "class Limits" in told
    assert max(len(line) for line in told.splitlines()) < 1_000
    assert str(inspect.signature(loop_core.ask)).endswith("-> 'Answer'")


def test_the_names_are_listed_before_they_are_used() -> None:
    code = """if True:
        import loop_core, sys
        assert set(loop_core.__all__) <= set(dir(loop_core))
        assert "loop_core.values" not in sys.modules, "listing the names imports nothing"
    """
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_who_reads_pays_for_no_connection() -> None:
    code = f"""if True:
        import loop_core, sys
        assert loop_core.read("openai_chat", {BODY!r}).text == "hi"
        assert not {{"httpx", "asyncio", "socket", "pydantic", "loop_core.turn.machine"}} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_type_checkers_read_the_same_names_as_are_imported() -> None:
    tree = ast.parse((ROOT / "loop_core" / "__init__.py").read_text("utf-8"))
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    told = {alias.name: (node.module or "").removeprefix("loop_core.")
            for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert told == loop_core._HOMES
    assert sorted(told) == sorted(loop_core.__all__)
    # With a `__getattr__` in their sight they would accept a name that is not there.
    assert [node.name for node in checked.orelse if isinstance(node, ast.FunctionDef)] == ["__getattr__"]


def test_the_repr_of_a_reading_is_short() -> None:
    reading = loop_core.read("openai_chat", BODY)
    assert repr(reading) == "<Reading end_turn, 'stop': 2 characters, 0 calls>"
    assert repr(loop_core.read("openai_chat", b"")) == "<Reading interrupted, no word: 0 characters, 0 calls>"


def test_a_name_that_is_not_there_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'loop_core' has no attribute 'decod'"):
        loop_core.decod  # noqa: B018


@each_row("name", provider.__all__)
def test_a_public_name_of_the_scripted_provider_is_found_when_it_is_used(name: str) -> None:
    assert callable(getattr(provider, name))


def test_another_name_of_the_scripted_provider_is_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        provider.nothing  # noqa: B018


@each_row(("name", "module"), [
    ("Turn", "turn.state"), ("Event", "turn.state"), ("TransportEnd", "values"), ("Stream", "client.conversation"),
    ("AsyncStream", "client.conversation"), ("LiveRequest", "client.outgoing"), ("LiveResponse", "client.exchange"),
    ("Role", "values"), ("TextPart", "values"), ("ToolResultPart", "values"), ("Dispatch", "turn.policy"),
    ("BatchRule", "turn.policy"), ("ReasonSource", "turn.policy"), ("Effect", "turn.state"), ("ToolCall", "values"),
    ("Usage", "values"), ("ProviderError", "values"), ("Evidence", "values"), ("Finding", "values"),
    ("Admission", "judge.gate"), ("HttpRequest", "client.outgoing"), ("fold_metrics", "turn.trace"),
])
def test_the_types_that_programs_annotate_stand_where_the_page_says(name: str, module: str) -> None:
    assert hasattr(importlib.import_module(f"loop_core.{module}"), name)
    page = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8").partition("## All names")[2]
    assert f"`{name}`" in page
    assert f"`loop_core.{module}`" in page


def test_what_a_toolbox_or_a_source_cannot_use_is_refused_before_anything_is_sent() -> None:
    for tools in ([len], {"weather": "sunny"}):
        with pytest.raises(loop_core.LoopError, match="tools: expected a mapping of names to functions"):
            loop_core.Toolbox(tools)  # type: ignore[arg-type]
    with pytest.raises(loop_core.LoopError, match="server: expected Server, not str"):
        loop_core.Live("http://127.0.0.1:9")  # type: ignore[arg-type]
    with pytest.raises(loop_core.LoopError, match="toolbox: expected ToolRunner, not dict, which has no method run"):
        loop_core.Live(NOBODY, toolbox={"weather": len})  # type: ignore[arg-type]
    for ask in (loop_core.ask, loop_core.stream):
        with pytest.raises(loop_core.LoopError, match="observer: expected Observer, not builtin_function"):
            list(ask(NOBODY, "hello", observer=print, **AT_ONCE))


@each_row(("use", "why"), [
    (lambda: loop_core.begin("t1", {"model": "m"}), "request: expected Request, not dict"),
    (lambda: loop_core.begin("t1", request(), policy="strict"), "policy: expected Policy, not str"),
    (lambda: loop_core.begin("t1", request(), {"max_tool_steps": 1}), "limits: expected Limits, not dict"),
    (lambda: loop_core.run("t1", request(), NOBODY), "source: expected TurnSource, not Server, which has no "),
    (lambda: loop_core.run("t1", "hello", Source()), "request: expected Request, not str"),
    (lambda: loop_core.run("t1", request(), Source(), loop_core.Limits()), "plan: expected Plan, not Limits"),
    (lambda: asyncio.run(loop_core.arun("t1", request(), NOBODY)), "source: expected AsyncTurnSource, not Server"),
    (lambda: asyncio.run(loop_core.arun("t1", request(), Source(), 3)), "plan: expected Plan, not int"),
    (lambda: loop_core.http_request(NOBODY, *begin()), "send: expected Send, not tuple"),
    (lambda: loop_core.http_request("x", begin()[0], begin()[1][0]), "server: expected Server, not str"),
    (lambda: loop_core.encode_request("openai_chat", {"model": "m"}), "request: expected Request, not dict"),
    (lambda: loop_core.encode_response("openai_chat", loop_core.read("openai_chat", BODY)), "response: expected"),
    (lambda: loop_core.read("openai_chat", BODY, headers=[(b"a", b"b")]), "headers: expected pairs .* of texts"),
    (lambda: loop_core.Server("openai_chat", sign=3), "sign: expected a function, not int"),
])
def test_a_value_of_the_wrong_type_is_refused_by_its_name(use: Callable[[], object], why: str) -> None:
    with pytest.raises(loop_core.LoopError, match=why):
        use()
