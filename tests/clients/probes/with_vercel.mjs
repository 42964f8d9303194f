// The Vercel AI SDK. As the other probes: one job a line is read, one report a line is written.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const installed = createRequire(process.cwd() + "/"); // the packages are where it runs, not beside this file
const load = (name) => import(pathToFileURL(installed.resolve(name)).href);
const { generateText, streamText, stepCountIs, tool } = await load("ai");
const { z } = await load("zod");

const MODELS = {
  openai_chat: async (job) => (await load("@ai-sdk/openai"))
    .createOpenAI({ baseURL: job.url + "/v1", apiKey: "any" }).chat(job.model),
  openai_responses: async (job) => (await load("@ai-sdk/openai"))
    .createOpenAI({ baseURL: job.url + "/v1", apiKey: "any" }).responses(job.model),
  anthropic_messages: async (job) => (await load("@ai-sdk/anthropic"))
    .createAnthropic({ baseURL: job.url + "/v1", apiKey: "any" })(job.model),
  gemini_generate: async (job) => (await load("@ai-sdk/google"))
    .createGoogleGenerativeAI({ baseURL: job.url + "/v1beta", apiKey: "any" })(job.model),
  bedrock_converse: async (job) => (await load("@ai-sdk/amazon-bedrock"))
    .createAmazonBedrock({ baseURL: job.url, region: "us-east-1", accessKeyId: "any", secretAccessKey: "any" })(job.model),
  ollama_chat: async (job) => (await load("ollama-ai-provider-v2"))
    .createOllama({ baseURL: job.url + "/api" })(job.model),
};

async function ask(job, report) {
  const tools = Object.fromEntries(job.tools.map((each) => [each.name, tool({
    description: each.description,
    inputSchema: z.object(Object.fromEntries(
      Object.keys(each.parameters.properties).map((name) => [name, z.string()]))),
    execute: async (given) => {
      report.ran.push([each.name, JSON.stringify(given)]);
      return each.result;
    },
  })]));
  const asked = {
    model: await MODELS[job.api](job), prompt: job.prompt, maxOutputTokens: job.cap, stopWhen: stepCountIs(6),
    ...(job.tools.length ? { tools } : {}), ...(job.timeout ? { timeout: job.timeout * 1000 } : {}),
  };
  if (!job.stream) {
    const came = await generateText(asked);
    report.text = came.text;
    report.reason = came.finishReason;
    return;
  }
  // An error in a stream is an event and a call of onError; nothing is thrown.
  const came = streamText({ ...asked, onError: ({ error }) => { report.error = error?.name ?? "error event"; } });
  for await (const part of came.fullStream) {
    if (part.type === "start-step") report.text = "";
    if (part.type === "text-delta") report.text += part.text;
    if (part.type === "finish-step") report.reason = part.finishReason;
    if (part.type === "abort") report.error = "abort";
  }
}

await Promise.all(Object.values(MODELS).map((make) => make({ url: "http://none", model: "none" })));
process.stdout.write("{}\n"); // its libraries are loaded
for await (const line of createInterface({ input: process.stdin })) {
  const report = { reason: "None", text: "", ran: [], gave: [], error: null };
  try {
    await ask(JSON.parse(line), report);
  } catch (why) {
    console.error(why);
    report.error = why?.name ?? String(typeof why);
  }
  process.stdout.write(JSON.stringify(report) + "\n");
}
