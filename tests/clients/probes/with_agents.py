"""openai-agents: it has no reason to give besides its final output."""

from __future__ import annotations

import openai
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from common import Job, Report, function, main

set_tracing_disabled(True)
MODELS = {"openai_chat": OpenAIChatCompletionsModel, "openai_responses": OpenAIResponsesModel}


async def ask(job: Job, report: Report) -> None:
    more = {"timeout": job["timeout"]} if job["timeout"] else {}
    async with openai.AsyncOpenAI(base_url=job["url"] + "/v1", api_key="any", **more) as client:
        agent = Agent(
            name="probe", instructions="You help.", model=MODELS[job["api"]](job["model"], client),
            model_settings=ModelSettings(max_tokens=job["cap"]),
            tools=[function_tool(function(each, report)) for each in job["tools"]])
        if job["stream"]:
            came = Runner.run_streamed(agent, job["prompt"])
            async for _ in came.stream_events():
                pass
        else:
            came = await Runner.run(agent, job["prompt"])
    report["text"] = str(came.final_output or "")


main({"": ask})
