"""Chats and logs of aider: whose words their lines are, and what they say about the end of an answer."""

from __future__ import annotations

import pytest

from inspector.report.facts import View
from inspector.sessions.importers.recognition import choose
from loop_core.values import ReasoningPart
from tests.scenes.rows import each_row
from tests.scenes.transcripts import rules, show, stops, words

BEGIN = ("\n# aider chat started at 2026-11-29 07:13:02\n\n> aider --model openai/m  \n"
         "> Model: openai/m with whole edit format  \n")
COUNTS = "> Tokens: 594 sent, 9 received.  \n"
LIMIT = (">  \n>  \n> Model openai/m has hit a token limit!  \n> Token counts below are approximate.  \n>  \n"
         "> Input tokens: ~441 of 0 -- possibly exhausted context window!  \n"
         "> Open URL for more info? (Y)es/(N)o/(D)on't ask again [Yes]: y  \n")
FAILED = ("> litellm.RateLimitError: RateLimitError: OpenAIException - slow down  \n"
          "> The API provider has rate limited you. Try again later or check your quotas.  \n")
RETRY = "> Retrying in 0.2 seconds...  \n"
STOPPED = ">  \n>  \n> ^C again to exit  \n"


def prompt(text: str) -> str:
    return "\n" + "".join(f"#### {line}  \n" for line in text.split("\n"))


def reply(text: str) -> str:
    return f"\n{text}\n\n"


def chat(tmp_path, *blocks: str) -> View:
    return show(BEGIN + "".join(blocks), tmp_path, name=".aider.chat.history.md")


def texts(seen: View) -> list[str | None]:
    return [facts.exchange.response.text for facts in seen.responses]


def prompts(seen: View) -> list[list[str]]:
    return [[message.text for message in facts.exchange.request.messages] for facts in seen.responses]


# -- the chat ---------------------------------------------------------------------------------------------------------


def test_a_chat_has_texts_and_no_ends(tmp_path):
    seen = chat(tmp_path, prompt("go\nnow"), reply("# One\n\nTwo."), COUNTS, prompt("on"), reply("Three."), COUNTS)
    assert (texts(seen), prompts(seen)) == (["# One\n\nTwo.", "Three."], [["go\nnow"], ["on"]])
    assert words(seen) == ["END NOT RECORDED"] * 2, "a filter and a lost end leave the same lines"
    first = seen.responses[0].exchange
    assert (first.response.model, first.recorder, first.session) == ("openai/m", "aider", "2026-11-29 07:13:02")
    assert (first.body, first.lines) == (b"# One\n\nTwo.", (10,))
    assert seen.inputs[0].format == "aider"


def test_a_limit_ends_the_text_before_it(tmp_path):
    seen = chat(tmp_path, prompt("go"), reply("One t"), LIMIT, prompt("on"), reply("Two."), COUNTS)
    assert (words(seen), texts(seen)) == (["TRUNCATED, ANSWER LOST", "END NOT RECORDED"], ["One t", "Two."])
    assert (stops(seen)[0], rules(seen)) == ("max_tokens", ["transcript.recorder", "aider.limits"])
    exchange = seen.responses[0].exchange
    at = exchange.response.stop_reason.evidence[0].at
    assert exchange.body[at.start : at.end] == b"> Model openai/m has hit a token limit!  "


def test_a_limit_without_a_text_may_be_that_of_the_context(tmp_path):
    seen = chat(tmp_path, prompt("go"), LIMIT)
    assert (words(seen), stops(seen)) == (["INTERRUPTED"], ["interrupted"])


def test_a_request_that_failed_and_was_sent_again(tmp_path):
    seen = chat(tmp_path, prompt("go"), reply("One t"), FAILED, RETRY, FAILED, RETRY, reply("One two."), COUNTS)
    assert (texts(seen), prompts(seen)) == (["One t", None, "One two."], [["go"], [], []])
    assert stops(seen) == ["error", "error", "unknown"]
    assert [facts.exchange.response.error.retryable for facts in seen.responses[:2]] == [True, True]
    assert words(seen) == ["END NOT RECORDED"]
    assert words(chat(tmp_path, prompt("go"), FAILED)) == ["ERROR"]


@pytest.mark.parametrize("line", ["", "> Empty response received from LLM. Check your provider account?  \n"])
def test_an_answer_without_a_text_is_one(tmp_path, line):
    seen = chat(tmp_path, prompt("go"), line, COUNTS)
    assert (len(seen.responses), words(seen)) == (1, ["END NOT RECORDED"])
    assert not seen.responses[0].exchange.response.parts


def test_the_user_interrupts_the_answer_that_follows_the_note(tmp_path):
    seen = chat(tmp_path, prompt("go"), STOPPED, reply("One t"), prompt("on"), reply("Two."), COUNTS, STOPPED, STOPPED)
    assert (words(seen), stops(seen)) == (["CANCELLED", "END NOT RECORDED"], ["cancelled", "unknown"])
    seen = chat(tmp_path, prompt("go"), STOPPED, prompt("on"), reply("Two."), COUNTS)
    assert (texts(seen), words(seen)) == (["Two."], ["END NOT RECORDED"])
    assert any("stop a request of the user before any answer" in notice for notice in map(str, seen.inputs[0].notices))


@each_row("command", ["/ask", "/code", "/architect", "/context", "/help"])
def test_commands_are_no_messages_of_the_user(tmp_path, command):
    seen = chat(tmp_path, prompt("/add a.py"), "> Added a.py to the chat  \n", prompt(f"{command} why?"), reply("So."),
                COUNTS)
    assert prompts(seen) == [[f"{command} why?"]]


@each_row("text", [
    "One.\n\n> quoted  \n> twice  \n\nTwo.", "> quoted  \n\nTwo.", "One.\n\n> quoted  ", "One.\n> plain\nTwo.",
    "#### A heading\n\nTwo.", "# aider chat started at noon\n\nTwo.",
])
def test_a_text_may_look_like_lines_of_others(tmp_path, text):
    seen = chat(tmp_path, prompt("go"), reply(text), COUNTS, prompt("on"), reply("End."), COUNTS)
    assert texts(seen) == [text, "End."]


@each_row("line", [
    COUNTS, FAILED, LIMIT, RETRY, "> Empty response received from LLM.  \n", "> Traceback (most recent call last):  \n",
    "> ^C KeyboardInterrupt  \n", "> Applied edit to a.py  \n", "> Fix lint errors? (Y)es/(N)o [Yes]: y  \n",
])
def test_lines_of_aider_part_two_texts(tmp_path, line):
    assert texts(chat(tmp_path, prompt("go"), reply("One."), line, reply("Two.")))[-1] == "Two."


REPORT = ("> Tokens: 3.9k sent, 1.3k cache hit, 1.2k received.\n"
          "Cost: $0.03 message, $0.04 session. Use --no-stream for accurate caching costs.  \n"
          "> Applied edit to a.py  \n")
COMMANDS = ("> Tokens: 9 sent, 2 received.  \n> cd src\npython a.py  \n"
            "> Run shell commands? (Y)es/(N)o [Yes]: y  \n")
REFUSED = ("> Tokens: 9 sent, 2 received.  \n> The LLM did not conform to the edit format.  \n"
           "> # 1 SEARCH/REPLACE block failed to match!\n\n## SearchReplaceNoExactMatch: a.py\n<<<<<<< SEARCH\n    a\n"
           "    \n    b\n>>>>>>> REPLACE\n\nThe SEARCH section must match.  \n")


def test_what_a_command_prints_is_no_text_of_the_model(tmp_path):
    printed = "> Here are summaries of some files.\nask me to *add them* first.\n\na.py:\n⋮...  \n"
    seen = chat(tmp_path, prompt("/map"), printed, prompt("go"), reply("> quoted\n\nOne."), COUNTS)
    assert (texts(seen), prompts(seen)) == (["> quoted\n\nOne."], [["go"]])


@each_row("notes", [REPORT, COMMANDS, REFUSED])
def test_a_message_of_aider_in_several_lines_is_no_text_of_the_model(tmp_path, notes):
    seen = chat(tmp_path, prompt("go"), reply("One."), notes, prompt("on"), reply("Two."), COUNTS)
    assert (texts(seen), prompts(seen)[1][-1:]) == (["One.", "Two."], ["on"])


@each_row("text", ["One.", "One.\n\n#### A heading\n\n> a quotation\n\nMore."])
def test_a_chat_without_the_spaces_at_the_ends_of_its_lines_is_read(tmp_path, text):
    """Formatters of Markdown and hooks that remove trailing spaces leave such files in repositories."""
    cost = "> Tokens: 9 sent, 2 received. Cost: $0.03 message, $0.04 session.  \n"
    blocks = [BEGIN, prompt("go\nnow"), reply(text), cost, prompt("on"), reply("Two."), COUNTS]
    bare = "".join(blocks).replace("  \n", "\n")
    for data in (bare, bare.replace("\n", "\r\n")):
        seen = show(data, tmp_path, name=".aider.chat.history.md")
        assert [(each or "").replace("\r", "") for each in texts(seen)] == [text, "Two."]
        assert prompts(seen) == [["go\nnow"], ["on"]]


def test_a_quoted_line_of_aider_does_not_make_headings_messages(tmp_path):
    quoted = "#### A heading\n\n> Applied edit to a.py\n\n#### Another\n\nMore."
    seen = chat(tmp_path, prompt("go"), prompt("on"), reply(f"One.\n\n{quoted}"), COUNTS)
    assert texts(seen) == [f"One.\n\n{quoted}"]


def test_reasoning_is_no_text(tmp_path):
    tag = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"
    seen = chat(tmp_path, prompt("go"), reply(f"<{tag}>\n\nhm\n\n</{tag}>\n\nOne."), COUNTS,
                prompt("on"), reply(f"<{tag}>\n\nhm"), COUNTS)
    assert texts(seen) == ["One.", None]
    assert [facts.exchange.response.parts[0] for facts in seen.responses] == [ReasoningPart("hm")] * 2


def test_each_start_of_aider_is_a_session(tmp_path):
    other = BEGIN.replace("07:13:02", "08:00:00").replace("openai/m", "openai/n")
    seen = chat(tmp_path, prompt("go"), reply("One."), COUNTS, other, prompt("go"), reply("Two."), COUNTS)
    assert [(facts.exchange.session[-8:], facts.exchange.response.model) for facts in seen.responses] == [
        ("07:13:02", "openai/m"), ("08:00:00", "openai/n")]
    assert seen.responses[1].exchange.request.previous_id is None


def test_lines_with_the_ends_of_windows(tmp_path):
    text = (BEGIN + prompt("go") + reply("One t") + LIMIT).replace("\n", "\r\n")
    seen = show(text, tmp_path, name="chat.md")
    assert (words(seen), texts(seen), prompts(seen)) == (["TRUNCATED"], ["One t"], [["go"]])


# -- the log ----------------------------------------------------------------------------------------------------------


def request(*messages: tuple[str, str], second: int = 5) -> str:
    lines = [line for role, text in messages
             for line in ("-------", *(f"{role} {each}" for each in text.split("\n")))]
    return f"TO LLM 2026-11-29T07:14:{second:02}\n" + "\n".join(lines) + "\n"


def response(text: str, second: int = 6) -> str:
    lines = "\n".join(f"ASSISTANT {line}" for line in text.split("\n")) if text else ""
    return f"LLM RESPONSE 2026-11-29T07:14:{second:02}\n{lines}\n"


SYSTEM, GO = ("SYSTEM", "be brief"), ("USER", "go\n\nnow")


def log(tmp_path, *blocks: str) -> View:
    return show("".join(blocks), tmp_path, name="llm.history")


def test_a_log_has_the_messages_since_the_last_answer(tmp_path):
    seen = log(tmp_path, request(SYSTEM, GO), response("One.\n\nTwo."),
               request(SYSTEM, GO, ("ASSISTANT", "One.\n\nTwo."), ("USER", "on")), response("Three."))
    assert (texts(seen), prompts(seen)) == (["One.\n\nTwo.", "Three."], [["be brief\ngo\n\nnow"], ["on"]])
    assert words(seen) == ["END NOT RECORDED"] * 2
    assert seen.responses[0].exchange.started == "2026-11-29T07:14:05"


def test_a_request_that_ends_with_the_answer_asks_for_its_rest(tmp_path):
    seen = log(tmp_path, request(SYSTEM, GO), response("One two "), request(SYSTEM, GO, ("ASSISTANT", "One two")),
               response(" three"), request(SYSTEM, GO, ("ASSISTANT", "One two three")), response(" four."))
    assert (texts(seen), stops(seen)) == (["One two ", " three", " four."], ["max_tokens", "max_tokens", "unknown"])
    assert (len(seen.turns), rules(seen)) == (1, ["transcript.absent", "transcript.inferred.error_row"])
    other = log(tmp_path, request(SYSTEM, GO), response("One"),
                request(SYSTEM, GO, ("ASSISTANT", "Else")), response("x"))
    assert stops(other)[0] == "unknown"


def test_a_request_that_is_logged_twice_shows_nothing(tmp_path):
    seen = log(tmp_path, request(SYSTEM, GO), response("One t"), request(SYSTEM, GO), response("One two."))
    assert (stops(seen), texts(seen)) == (["unknown", "unknown"], ["One t", "One two."])
    assert prompts(seen)[0] == prompts(seen)[1]


def test_the_history_says_that_the_user_interrupted_an_answer(tmp_path):
    seen = log(tmp_path, request(SYSTEM, GO), response("One t"), request(
        SYSTEM, GO, ("ASSISTANT", "One t"), ("USER", "^C KeyboardInterrupt"),
        ("ASSISTANT", "I see that you interrupted my previous reply."), ("USER", "on")), response("Two."))
    assert words(seen) == ["CANCELLED", "END NOT RECORDED"]


@each_row("text", [
    "# aider chat started\n", "TO LLM\nUSER hi\n", "TO LLM 2026-11-29T07:14:05\nhello\n", "# A page\n\n> quoted  \n",
])
def test_another_text_is_no_chat(text):
    assert choose(text.encode(), ".aider.chat.history.md") != "aider"
