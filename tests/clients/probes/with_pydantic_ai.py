"""pydantic-ai: the reason is that of its last response."""

from __future__ import annotations

from typing import Any

from common import Job, Report, function, main, word
from pydantic_ai import Agent, Tool


def model_of(job: Job) -> Any:
    name, url = job["model"], job["url"]
    if job["api"] in ("openai_chat", "openai_responses"):
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind = OpenAIChatModel if job["api"] == "openai_chat" else OpenAIResponsesModel
        return kind(name, provider=OpenAIProvider(base_url=url + "/v1", api_key="any"))
    if job["api"] == "anthropic_messages":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key="any"))
    if job["api"] == "gemini_generate":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(name, provider=GoogleProvider(base_url=url, api_key="any"))
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    more = {"aws_read_timeout": job["timeout"]} if job["timeout"] else {}
    provider = BedrockProvider(base_url=url, region_name="us-east-1", aws_access_key_id="any",
                               aws_secret_access_key="any", **more)
    return BedrockConverseModel(name, provider=provider)


async def drain(context: Any, events: Any) -> None:
    async for _ in events:
        pass


async def ask(job: Job, report: Report) -> None:
    settings = {"max_tokens": job["cap"], **({"timeout": job["timeout"]} if job["timeout"] else {})}
    agent = Agent(model_of(job), tools=[Tool(function(each, report)) for each in job["tools"]])
    more = {"event_stream_handler": drain} if job["stream"] else {}
    came = await agent.run(job["prompt"], model_settings=settings, **more)
    report["text"], report["reason"] = came.output, word(came.response.finish_reason)


main({"": ask})
