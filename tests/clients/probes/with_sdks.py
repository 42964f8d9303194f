"""The official SDKs: one request, whose answer is handed over; and the two that run tools by themselves."""

from __future__ import annotations

import json
from typing import Any

from common import Job, Report, function, main, word


def _openai(job: Job) -> Any:
    import openai

    more = {"timeout": job["timeout"]} if job["timeout"] else {}
    return openai.OpenAI(base_url=job["url"] + "/v1", api_key="any", **more)


def chat(job: Job, report: Report) -> None:
    tools = [{"type": "function", "function": {key: each[key] for key in ("name", "description", "parameters")}}
             for each in job["tools"]]
    more = {"tools": tools} if tools else {}
    report["reason"] = "None"
    came = _openai(job).chat.completions.create(
        model=job["model"], messages=[{"role": "user", "content": job["prompt"]}], max_completion_tokens=job["cap"],
        stream=job["stream"], **more)
    for event in came if job["stream"] else [came]:
        for choice in event.choices:
            said = choice.delta if job["stream"] else choice.message
            report["text"] += said.content or ""
            report["reason"] = choice.finish_reason or report["reason"]
            for call in said.tool_calls or ():
                if call.function.name:
                    report["gave"].append([call.function.name, ""])
                report["gave"][-1][1] += call.function.arguments or ""


def responses(job: Job, report: Report) -> None:
    tools = [{"type": "function", "name": each["name"], "description": each["description"],
              "parameters": each["parameters"], "strict": False} for each in job["tools"]]
    more = {"tools": tools} if tools else {}
    report["reason"] = "None"
    came = _openai(job).responses.create(
        model=job["model"], input=job["prompt"], max_output_tokens=job["cap"], stream=job["stream"], **more)
    if not job["stream"]:
        return _response(came, report)
    for event in came:
        if event.type == "response.output_text.delta":
            report["text"] += event.delta
        elif event.type == "error":
            report["reason"] = f"error event: {event.code}"
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            _response(event.response, report)
    return None


def _response(response: Any, report: Report) -> None:
    report["text"] = response.output_text
    report["gave"] = [[item.name, item.arguments] for item in response.output if item.type == "function_call"]
    why = response.incomplete_details.reason if response.incomplete_details else None
    report["reason"] = f"{word(response.status)}: {why}" if why else word(response.status)


def _anthropic(job: Job) -> Any:
    import anthropic

    more = {"timeout": job["timeout"]} if job["timeout"] else {}
    return anthropic.Anthropic(base_url=job["url"], api_key="any", **more)


def messages(job: Job, report: Report) -> None:
    if job["loops"]:
        return _runner(job, report)
    tools = [{"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
             for each in job["tools"]]
    asked = {"model": job["model"], "messages": [{"role": "user", "content": job["prompt"]}],
             "max_tokens": job["cap"], **({"tools": tools} if tools else {})}
    report["reason"] = "None"
    if not job["stream"]:
        return _message(_anthropic(job).messages.create(**asked), report)
    with _anthropic(job).messages.stream(**asked) as came:
        for piece in came.text_stream:
            report["text"] += piece
        return _message(came.get_final_message(), report)


def _message(message: Any, report: Report) -> None:
    report["text"] = "".join(block.text for block in message.content if block.type == "text")
    report["gave"] = [[block.name, json.dumps(block.input)] for block in message.content if block.type == "tool_use"]
    report["reason"] = word(message.stop_reason)


def _runner(job: Job, report: Report) -> None:
    from anthropic import beta_tool

    tools = [beta_tool(function(each, report), name=each["name"], input_schema=each["parameters"])
             for each in job["tools"]]
    report["reason"] = "None"
    asked = {"model": job["model"], "messages": [{"role": "user", "content": job["prompt"]}],
             "max_tokens": job["cap"], "tools": tools, "max_iterations": 6}
    for came in _anthropic(job).beta.messages.tool_runner(**asked, stream=job["stream"]):
        begun = report["text"] if report["reason"] == "pause_turn" else ""  # the next one goes on with it
        _message(came.get_final_message() if job["stream"] else came, report)
        report["text"] = begun + report["text"]
    report["gave"] = []


def gemini(job: Job, report: Report) -> None:
    from google import genai

    more = {"timeout": int(job["timeout"] * 1000)} if job["timeout"] else {}
    client = genai.Client(api_key="any", http_options={"base_url": job["url"], **more})
    config = {"max_output_tokens": job["cap"], "tools": [function(each, report) for each in job["tools"]]}
    ask = client.models.generate_content_stream if job["stream"] else client.models.generate_content
    report["reason"] = "None"
    came = ask(model=job["model"], contents=job["prompt"], config=config)
    for event in came if job["stream"] else [came]:
        for candidate in event.candidates or ():
            report["reason"] = word(candidate.finish_reason) if candidate.finish_reason else report["reason"]
            parts = (candidate.content.parts if candidate.content else None) or ()
            if any(part.function_call for part in parts):
                report["text"] = ""  # what was said before a call is not the last answer
            report["text"] += "".join(part.text or "" for part in parts if not part.thought)


def converse(job: Job, report: Report) -> None:
    import boto3
    from botocore.config import Config

    config = Config(read_timeout=job["timeout"]) if job["timeout"] else Config()
    client = boto3.client("bedrock-runtime", endpoint_url=job["url"], region_name="us-east-1",
                          aws_access_key_id="any", aws_secret_access_key="any", config=config)
    tools = [{"toolSpec": {"name": each["name"], "description": each["description"],
                           "inputSchema": {"json": each["parameters"]}}} for each in job["tools"]]
    more = {"toolConfig": {"tools": tools}} if tools else {}
    asked = {"modelId": job["model"], "messages": [{"role": "user", "content": [{"text": job["prompt"]}]}],
             "inferenceConfig": {"maxTokens": job["cap"]}, **more}
    report["reason"] = "None"
    if not job["stream"]:
        came = client.converse(**asked)
        report["reason"] = word(came.get("stopReason"))
        for block in came["output"]["message"]["content"]:
            report["text"] += block.get("text", "")
            if "toolUse" in block:
                report["gave"].append([block["toolUse"]["name"], json.dumps(block["toolUse"]["input"])])
        return
    for event in client.converse_stream(**asked)["stream"]:
        if "toolUse" in event.get("contentBlockStart", {}).get("start", {}):
            report["gave"].append([event["contentBlockStart"]["start"]["toolUse"]["name"], ""])
        delta = event.get("contentBlockDelta", {}).get("delta", {})
        report["text"] += delta.get("text", "")
        if "toolUse" in delta:
            report["gave"][-1][1] += delta["toolUse"].get("input", "")
        report["reason"] = event.get("messageStop", {}).get("stopReason", report["reason"])


def ollama(job: Job, report: Report) -> None:
    import ollama

    client = ollama.Client(host=job["url"], **({"timeout": job["timeout"]} if job["timeout"] else {}))
    tools = [{"type": "function", "function": {key: each[key] for key in ("name", "description", "parameters")}}
             for each in job["tools"]]
    report["reason"] = "None"
    came = client.chat(model=job["model"], messages=[{"role": "user", "content": job["prompt"]}], tools=tools,
                       options={"num_predict": job["cap"]}, stream=job["stream"])
    for event in came if job["stream"] else [came]:
        report["text"] += event.message.content or ""
        report["reason"] = event.done_reason or report["reason"]
        for call in event.message.tool_calls or ():
            report["gave"].append([call.function.name, json.dumps(dict(call.function.arguments))])


main({"openai_chat": chat, "openai_responses": responses, "anthropic_messages": messages, "gemini_generate": gemini,
      "bedrock_converse": converse, "ollama_chat": ollama})
