"""Call markup in a text: which formats are known, where it counts, and where it does not."""

from __future__ import annotations

import pytest

from loop_core.judge.signs import Fence, Leak, fences, find_leak, only_thinks
from tests.scenes.rows import each_row

EDIT = frozenset({"edit"})
BAR, GAP = "\uff5c", "\u2581"

FORMATS: dict[str, str] = {
    "Hermes, Qwen": '<tool_call>\n{"name": "edit", "arguments": {"p": "b"}}\n</tool_call>',
    "Hermes, the name last": '<tool_call>{"arguments": {"name": "x"}, "name": "edit"}</tool_call>',
    "Granite, a list": '<tool_call>[{"name": "edit", "arguments": {}}]',
    "Qwen XML": "<tool_call>\n<function=edit>\n<parameter=p>\nb\n</parameter>\n</function>\n</tool_call>",
    "Llama 3.1": '<function=edit>{"p": "b"}</function>',
    "Seed": "<seed:tool_call>\n<function=edit>\n<parameter=p>b",
    "GLM": "<tool_call>edit\n<arg_key>p</arg_key>\n<arg_value>b</arg_value>\n</tool_call>",
    "LongCat": "<longcat_tool_call>edit\n<longcat_arg_key>p</longcat_arg_key>",
    "Hunyuan": "<tool_calls><tool_call>edit<tool_sep>\n<arg_key>p",
    "Anthropic": '<function_calls>\n<invoke name="edit">\n<parameter name="p">b</parameter>\n</invoke>',
    "MiniMax M2": '<minimax:tool_call>\n<invoke name="edit">',
    "xAI": '<xai:function_call name="edit">',
    "Jamba, MiniMax M1": '<tool_calls>\n[{"name": "edit", "arguments": {}}]\n</tool_calls>',
    "Nemotron": '<TOOLCALL>[{"name": "edit", "arguments": {}}]</TOOLCALL>',
    "Olmo": '<function_calls>\nedit(p="b")\n</function_calls>',
    "Mistral": '[TOOL_CALLS] [{"name": "edit", "arguments": {"p": "b"}}]',
    "Mistral v11": '[TOOL_CALLS]edit[ARGS]{"p": "b"}',
    "Mistral v13": '[TOOL_CALLS]edit{"p": "b"}',
    "Llama, JSON": '<|python_tag|>{"name": "edit", "parameters": {"p": "b"}}',
    "Llama, built in": '<|python_tag|>edit.call(p="b")',
    "Llama 4": '<|python_start|>[edit(p="b")]<|python_end|>',
    "DeepSeek R1": f"<{BAR}tool{GAP}calls{GAP}begin{BAR}><{BAR}tool{GAP}call{GAP}begin{BAR}>function"
                   f"<{BAR}tool{GAP}sep{BAR}>edit\n```json\n{{}}\n```",
    "DeepSeek V3.1": f'<{BAR}tool{GAP}call{GAP}begin{BAR}>edit<{BAR}tool{GAP}sep{BAR}>{{"p": "b"}}',
    "DeepSeek, plain bars": "<|tool_call_begin|>edit<|tool_sep|>{}",
    "DeepSeek DSML": f'<{BAR}DSML{BAR}function_calls>\n<{BAR}DSML{BAR}invoke name="edit">',
    "Kimi K2": '<|tool_calls_section_begin|><|tool_call_begin|>functions.edit:0<|tool_call_argument_begin|>{"p"',
    "Kimi K3": '<|open|>toolscall tool="edit" index="1"<|sep|>',
    "gpt-oss": '<|channel|>commentary to=functions.edit <|constrain|>json<|message|>{"p": "b"}<|call|>',
    "gpt-oss, its marks stripped": 'assistantcommentary to=functions.edit json{"p": "b"}',
    "Granite, Phi": '<|tool_call|>[{"name": "edit", "arguments": {}}]<|/tool_call|>',
    "LFM": '<|tool_call_start|>[edit(p="b")]<|tool_call_end|>',
    "Functionary": "<|from|>assistant\n<|recipient|>edit\n<|content|>{",
    "InternLM": '<|action_start|><|plugin|>{"name": "edit", "parameters": {}}<|action_end|>',
    "Command": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "edit", "parameters": {}}]',
    "Gemma": '<start_function_call>call:edit{p:<escape>b<escape>}<end_function_call>',
}


@each_row(("opening", "closing"), [
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"), ("<seed:think>", "</seed:think>"), ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|channel|>analysis<|message|>", "<|start|>assistant"),
])
def test_a_text_may_be_reasoning_and_nothing_else(opening: str, closing: str) -> None:
    for text in (f"\n{opening}Well.", f"{opening}\nWell.\n{closing}\n", f"Well.\n{closing}", opening):
        sign = only_thinks(text)
        assert sign is not None, text
        assert text[sign.start : sign.end] == text.strip()
    for text in (f"{opening}Well.{closing}Yes.", f"Well.{closing}\nYes.", f"Write {opening} first.", "Yes.", "",
                 f"Write {opening} and {closing}"):
        assert only_thinks(text) is None, text


@pytest.mark.parametrize("end", ["<|end|>", ""], ids=["whole", "its end token is not rendered"])
def test_an_answer_may_follow_the_reasoning_of_gpt_oss(end: str) -> None:
    thought = f"<|channel|>analysis<|message|>Well.{end}"
    assert only_thinks(thought) is not None
    assert only_thinks(f"{thought}<|start|>assistant<|channel|>final<|message|>Yes.{end}") is None
    assert only_thinks(f"<|channel|>final<|message|>Yes.{end}") is None
    assert only_thinks(f"Yes.{end}") is None, "<|end|> ends any message of gpt-oss and of Phi"


@each_row("text", FORMATS.values())
def test_a_call_that_a_parser_left_in_the_text_is_found_closed_or_not(text: str) -> None:
    for said in (text, f"I will edit it.\n{text}", f"{text}\nDone."):
        found = find_leak(said, EDIT)
        assert found is not None
        assert found.tool.removeprefix("functions.") == "edit"
        assert said[found.start : found.end].endswith(("edit", 'edit"'))


@each_row("text", FORMATS.values())
def test_what_names_no_declared_tool_is_text(text: str) -> None:
    assert find_leak(text, frozenset({"delete"})) is None
    assert find_leak(text, frozenset()) is None
    assert find_leak(text, None) is not None, "no declaration is known"
    assert find_leak(f"Such models write {text} to call a tool.", None) is None, "it may be an explanation"


@each_row("text", FORMATS.values())
def test_markup_inside_code_is_an_example(text: str) -> None:
    for wrapped in (f"As follows:\n```\n{text}\n```\nThat is all.", f"~~~xml\n{text}\n~~~", f"````\n{text}\n````",
                    f"```\n{text}"):
        assert find_leak(wrapped, EDIT) is None
    flat = text.replace("\n", " ").replace("```", "")
    assert find_leak(f"Write `{flat}` to call it.", EDIT) is None
    after = find_leak(f"```py\nx = 1\n```\n{text}", EDIT)
    assert after is not None
    assert after.start > len("```py\nx = 1\n```")


@each_row("text", [
    "", "edit the file", "a < b and c > d", "<p>edit</p>", "Use the <tool_call> tag to call edit.", "<function> edit",
    "[TOOL_CALLS] is a token", "it leads to=functions of edit", "<|endoftext|>edit",
    '{"name": "edit", "arguments": {}}',
])
def test_ordinary_text_holds_no_call(text: str) -> None:
    assert find_leak(text, EDIT) is None


def test_the_first_of_several_is_told() -> None:
    text = '<tool_call>{"name": "other"}</tool_call> <invoke name="edit"> <function=edit>'
    assert find_leak(text, EDIT) == Leak("Anthropic, MiniMax, xAI", "edit", 41, 59)


def test_a_text_made_of_openings_is_read_in_time() -> None:
    assert find_leak('<tool_call>{"n' * 50_000, EDIT) is None
    assert find_leak("<|open|>" * 50_000 + "`" * 50_000, EDIT) is None


def test_fences_open_and_close() -> None:
    assert list(fences("```\na\n```")) == [Fence(0, 9, True)]
    assert list(fences("a\n```py\nb")) == [Fence(2, 9, False)]
    assert list(fences("````\n```\n````")) == [Fence(0, 13, True)], "a longer fence holds a shorter one"
    assert list(fences("```\n~~~\n```")) == [Fence(0, 11, True)]
    assert list(fences("``` a ``` in a line")) == []
