"""litellm: one call, whose answer is handed over in OpenAI's shape."""

from __future__ import annotations

import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched

import litellm
from common import Job, Report, main, word

litellm.telemetry = False
PREFIXES = {"openai_chat": "openai/", "openai_responses": "openai/", "anthropic_messages": "anthropic/",
            "gemini_generate": "gemini/", "bedrock_converse": "bedrock/converse/", "ollama_chat": "ollama_chat/"}


def settings(job: Job) -> dict[str, Any]:
    url, api = job["url"], job["api"]
    asked: dict[str, Any] = {"model": PREFIXES[api] + job["model"], "stream": job["stream"]}
    if job["timeout"]:
        asked["timeout"] = job["timeout"]
    if api == "bedrock_converse":
        return {**asked, "aws_bedrock_runtime_endpoint": url, "aws_region_name": "us-east-1",
                "aws_access_key_id": "any", "aws_secret_access_key": "any",
                "allowed_openai_params": ["tools"]}  # of a model that it does not know it assumes that there are none
    if api == "gemini_generate":
        return {**asked, "api_key": "any", "api_base": f"{url}/v1beta/models/{job['model']}"}
    if api == "openai_responses":  # of a model that it does not know it assumes that there is no stream
        litellm.register_model({job["model"]: {
            "litellm_provider": "openai", "mode": "responses", "supports_native_streaming": True}})
    return {**asked, "api_key": "any", "api_base": url + ("/v1" if api.startswith("openai") else "")}


def completion(job: Job, report: Report) -> None:
    tools = [{"type": "function", "function": {key: each[key] for key in ("name", "description", "parameters")}}
             for each in job["tools"]]
    report["reason"] = "None"
    came = litellm.completion(messages=[{"role": "user", "content": job["prompt"]}], max_tokens=job["cap"],
                              **({"tools": tools} if tools else {}), **settings(job))
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
    report["reason"] = "None"
    came = litellm.responses(input=job["prompt"], max_output_tokens=job["cap"],
                             **({"tools": tools} if tools else {}), **settings(job))
    if not job["stream"]:
        return _response(came, report)
    for event in came:
        kind = str(getattr(event.type, "value", event.type))
        if kind == "response.output_text.delta":
            report["text"] += event.delta
        elif kind == "error":
            report["reason"] = "error event"
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            _response(event.response, report)
    return None


def _response(response: Any, report: Report) -> None:
    said = [item if isinstance(item, dict) else item.model_dump() for item in response.output]
    report["text"] = "".join(part.get("text") or "" for item in said if item["type"] == "message"
                             for part in item["content"])
    report["gave"] = [[item["name"], item["arguments"]] for item in said if item["type"] == "function_call"]
    about = response.incomplete_details
    why = about.get("reason") if isinstance(about, dict) else getattr(about, "reason", None)
    report["reason"] = f"{word(response.status)}: {why}" if why else word(response.status)


main({"": completion, "openai_responses": responses})
