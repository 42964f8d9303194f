"""langchain's agent: the reason stands in the metadata of its last message."""

from __future__ import annotations

from typing import Any

from common import Job, Report, function, main, word
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool


def model_of(job: Job) -> Any:
    name, url, cap, seconds = job["model"], job["url"], job["cap"], job["timeout"]
    more = {"timeout": seconds} if seconds else {}
    if job["api"] in ("openai_chat", "openai_responses"):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=name, base_url=url + "/v1", api_key="any", max_tokens=cap, streaming=job["stream"],
                          use_responses_api=job["api"] == "openai_responses", **more)
    if job["api"] == "anthropic_messages":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=name, base_url=url, api_key="any", max_tokens=cap, streaming=job["stream"], **more)
    if job["api"] == "gemini_generate":
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(model=name, base_url=url, google_api_key="any", max_output_tokens=cap,
                                      streaming=job["stream"], **more)
    if job["api"] == "bedrock_converse":
        from botocore.config import Config
        from langchain_aws import ChatBedrockConverse

        config = {"config": Config(read_timeout=seconds)} if seconds else {}
        return ChatBedrockConverse(model=name, base_url=url, region_name="us-east-1", aws_access_key_id="any",
                                   aws_secret_access_key="any", max_tokens=cap, provider="anthropic",
                                   disable_streaming=False, **config)  # else by the name of the model
    from langchain_ollama import ChatOllama

    return ChatOllama(model=name, base_url=url, num_predict=cap, client_kwargs={"timeout": seconds} if seconds else {})


def ask(job: Job, report: Report) -> None:
    tools = [StructuredTool.from_function(function(each, report), name=each["name"], description=each["description"])
             for each in job["tools"]]
    agent = create_agent(model_of(job), tools)
    asked = {"messages": [{"role": "user", "content": job["prompt"]}]}
    if job["stream"]:
        state: dict[str, Any] = {}
        for mode, came in agent.stream(asked, stream_mode=["messages", "values"]):
            state = came if mode == "values" else state
    else:
        state = agent.invoke(asked)
    last = [each for each in state["messages"] if isinstance(each, AIMessage)][-1]
    about = last.response_metadata
    report["text"] = str(last.text)
    report["gave"] = []
    why = next((about[key] for key in ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
                if about.get(key)), None)
    details = about.get("incomplete_details") or {}
    report["reason"] = f"{why}: {details['reason']}" if details.get("reason") else word(why)


main({"": ask})
