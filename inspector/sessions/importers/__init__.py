"""The table of readable file formats, each with a module and a row, in the order in which they are tried.

A module has `sniff`, and `read` or `reader` (`Importer`). It is imported when its format is first tried, and only if
the file has one of the format's marks, so that a file does not load the modules of other formats. Databases are
recognised by their tables (`recognition.DATABASES`).
"""

from collections.abc import Mapping

from inspector.sessions.file_format import FOLDERS, AgentFolder, FileFormat, Keeps, Words

_HERE = "inspector.sessions.importers"
_ANY_BYTES = Keeps(Words.PROVIDER, cap=True, usage=True, wire=True)
SQLITE = b"SQLite format 3\0"
"""The first bytes of an SQLite file, which importers read by its path (`database.snapshot`)."""
# If two formats have the same score, the first counts; `known`, `pairs` and `body` accept any remaining file.
IMPORTERS: Mapping[str, FileFormat] = {
    "session": FileFormat("inspector.sessions.native", "session file of Loop Inspector",
                          'a line with "loop_inspector_session"', _ANY_BYTES, (b"loop_inspector_session",),
                          begins=True),
    "har": FileFormat(f"{_HERE}.har", "HAR file", 'an object with "log"', _ANY_BYTES, (b'"log"', b".har"), begins=True),
    "claude-code": FileFormat(
        f"{_HERE}.claude_code", "Claude Code transcript",
        'lines with "sessionId", "uuid" and "parentUuid", or of the "type" "user" with a "message"',
        Keeps(Words.PROVIDER, cap=True, usage=True),
        (b"sessionId", b"leafUuid", b"file-history-snapshot", b"queue-operation", b"total_cost_usd",
         b'"type":"user"', b'"type": "user"', b'"type":"assistant"', b'"type": "assistant"', b'"stream_event"'),
        FOLDERS["claude-code"], "subagents/**/*.jsonl", grows=True,
    ),
    "pi": FileFormat(
        f"{_HERE}.pi", "pi or OpenClaw session",
        'a first line with "type": "session" and "cwd" or "version", or lines of the "type" "message_end"',
        Keeps(Words.RECORDER, usage=True), (b"session", b'"parentId"', b'"message_end"'), (
            AgentFolder("pi", "PI_CODING_AGENT_DIR", ".pi/agent", ("sessions", "**")),
            AgentFolder("OpenClaw", "OPENCLAW_STATE_DIR", ".openclaw", ("agents", "*", "sessions")),
        ), grows=True,
    ),
    "letta": FileFormat(
        f"{_HERE}.letta", "Letta Code conversation", 'lines with "role" and a "metadata" of "conversation_id"',
        Keeps(Words.RECORDER, usage=True), (b'"conversation_id"',),
        (AgentFolder("Letta Code", "LETTA_LOCAL_BACKEND_DIR", ".letta/lc-local-backend", ("conversations", "*"),
                     ("messages.jsonl",)),),
    ),
    "kiro": FileFormat(
        f"{_HERE}.kiro", "Kiro session", 'lines with "version", "kind" and "data", or with a "payload" of a "type"',
        Keeps(Words.HINT), (b'"kind"', b'"payload"'), FOLDERS["kiro"], "../sub-executions/*.jsonl", grows=True,
    ),
    "grok": FileFormat(f"{_HERE}.grok", "Grok Build session", 'lines with a "method" that ends in session/update',
                       Keeps(Words.HINT, usage=True), (b'session/update"',), FOLDERS["grok"]),
    "droid": FileFormat(
        f"{_HERE}.droid", "Droid session", 'a first line with "type": "session_start", or lines with "toolName"',
        Keeps(Words.HINT), (b'"session_start"', b'"toolName"', b'"finalText"', b'"session_id"', b'"sessionId"',
                            b'"tool_use"', b'"tool_result"', b".factory"),
        (AgentFolder("Droid", "", ".factory", ("sessions", "**")),), grows=True,
    ),
    "cursor": FileFormat(
        f"{_HERE}.cursor", "Cursor agent transcript", 'lines with "role" and "message" alone', Keeps(Words.HINT),
        (b'"role"', b'"turn_ended"', b'"tool_call"', b'"apiKeySource"'), FOLDERS["cursor"],
        "../subagents/*.jsonl", grows=True, members=tuple(map(frozenset, (
            ("role", "message"), ("type", "status"), ("call_id", "tool_call"), ("apiKeySource", "permissionMode")))),
    ),
    "atif": FileFormat(f"{_HERE}.atif", "ATIF trajectory", 'an object with "schema_version": "ATIF-v1.…"',
                       Keeps(Words.HINT, usage=True), (b"ATIF", b"atif")),
    "otlp": FileFormat(
        f"{_HERE}.otlp", "OpenTelemetry traces and logs",
        'an object with "resourceSpans" or "resourceLogs", a span, or a database of MLflow or Phoenix',
        Keeps(Words.RECORDER, cap=True, usage=True),
        (SQLITE, b"resourceSpans", b"resource_spans", b"resourceLogs", b"resource_logs", b'"batches"', b'"traceID"',
         b"gen_ai.", b"gemini_cli.", b"copilot_chat.", b"llm.", b"openinference", b"telemetry.sdk", b'"trace_id"'),
    ),
    "gemini-cli": FileFormat(
        f"{_HERE}.gemini_cli", "Gemini CLI chat", 'an object, or a first line, with "sessionId" and "projectHash"',
        Keeps(Words.RECORDER, usage=True), (b'"projectHash"', b'"gemini"'), (
            AgentFolder("Gemini CLI", "GEMINI_CLI_HOME", "", (".gemini", "tmp", "*", "chats"),
                        ("session-*.json", "session-*.jsonl")),
            AgentFolder("Gemini CLI", "GEMINI_CLI_HOME", "", (".gemini", "tmp", "*", "chats", "*")),
        ),
    ),
    "gemini-stream": FileFormat(f"{_HERE}.gemini_stream", "stream of gemini --output-format stream-json",
                                'lines with "type": "tool_use" and "tool_id", or "init" with "model"',
                                Keeps(Words.HINT, usage=True), (b'"tool_id"', b'"init"', b'"stats"'), grows=True),
    "antigravity": FileFormat(
        f"{_HERE}.antigravity", "Antigravity transcript", 'lines with "step_index", "source" and "type"',
        Keeps(Words.HINT), (b'"step_index"',), tuple(
            AgentFolder("Antigravity", "", ".gemini", (home, "brain", "*", ".system_generated", "logs"),
                        ("transcript_full.jsonl",)) for home in ("antigravity", "antigravity-cli")), grows=True,
    ),
    "swe-agent": FileFormat(f"{_HERE}.swe_agent", "SWE-agent trajectory", 'an object with "trajectory" or "history"',
                            Keeps(Words.HINT), (b'"trajectory"', b'"history"', b'"attempts"', b".traj")),
    "mini-swe-agent": FileFormat(
        f"{_HERE}.mini_swe_agent", "mini-swe-agent trajectory", 'an object with "trajectory_format" or "mini_version"',
        Keeps(Words.PROVIDER, cap=True, usage=True),
        (b"mini-swe-agent", b"mini_version", b"exit_status", b"model_stats", b".traj.json", b"mswea", b"_FINAL_OUTPUT"),
        (AgentFolder("mini-swe-agent", "MSWEA_GLOBAL_CONFIG_DIR", ".config/mini-swe-agent", (), ("*.traj.json",)),),
    ),
    "trae": FileFormat(f"{_HERE}.trae", "trajectory of Trae Agent", 'an object with "llm_interactions" and "max_steps"',
                       Keeps(Words.PROVIDER, usage=True), (b'"llm_interactions"',)),
    "opencode": FileFormat(
        f"{_HERE}.opencode", "opencode or Kilo CLI session",
        'a database with the tables "session", "message" and "part", or JSON with "sessionID" or "messageID"',
        Keeps(Words.RECORDER, usage=True),
        (SQLITE, b"sessionID", b"messageID", b"projectID", b'"info"', b'"ses_', b"opencode"), (
            AgentFolder("opencode", "XDG_DATA_HOME", ".local/share", ("opencode",), ("opencode*.db",)),
            AgentFolder("opencode", "", "Library/Application Support/opencode", (), ("opencode*.db",)),
            AgentFolder("opencode", "OPENCODE_DB", None, (), ("*.db",)),
            AgentFolder("Kilo CLI", "XDG_DATA_HOME", ".local/share", ("kilo",), ("kilo*.db",)),
        ),
    ),
    "openhands": FileFormat(
        f"{_HERE}.openhands", "OpenHands events", 'events with "source" and "action", or "kind"; base_state.json',
        Keeps(Words.PROVIDER, cap=True, usage=True),
        (b'"source"', b"base_state.json", b'"history"', b'"test_result"'), (
            AgentFolder("OpenHands", "OH_PERSISTENCE_DIR", ".openhands", ("conversations", "*"), ("base_state.json",)),
        ),
    ),
    "codex": FileFormat(
        f"{_HERE}.codex", "Codex CLI rollout", 'lines with "type" and "payload"; "session" and "items"',
        Keeps(Words.HINT, usage=True), (b'"payload"', b"record_type", b'"instructions"', b'"input_text"'),
        tuple(AgentFolder("Codex CLI", "CODEX_HOME", ".codex", (name, "**"),
                          ("rollout-*.jsonl", "rollout-*.jsonl.zst", "rollout-*.json"))
              for name in ("sessions", "archived_sessions")), grows=True,
    ),
    "codex-exec": FileFormat(f"{_HERE}.codex_exec", "stream of codex exec --json",
                             'lines with "type": "thread.started", "item.completed"', Keeps(Words.HINT, usage=True),
                             (b"thread.started", b'"item.', b'"turn.'), grows=True),
    "kimi": FileFormat(
        f"{_HERE}.kimi", "Kimi Code or Kimi CLI session", 'a first line with "type": "metadata" and "protocol_version"',
        Keeps(Words.PROVIDER, cap=True, usage=True),
        (b"protocol_version", b"llm.request", b"context.append", b"turn.prompt", b'"workDir"', b'"lastPrompt"',
         b"TurnBegin", b"StepBegin", b'"_checkpoint"', b'"_usage"', b'"_system_prompt"'), (
            AgentFolder("Kimi Code", "KIMI_CODE_HOME", ".kimi-code", ("sessions", "*", "*", "agents", "*"),
                        ("wire.jsonl",)),
            *(AgentFolder("Kimi CLI", "KIMI_SHARE_DIR", ".kimi", ("sessions", "*", "*", *below), ("wire.jsonl",))
              for below in ((), ("subagents", "*"))),
            AgentFolder("Kimi CLI", "KIMI_SHARE_DIR", ".kimi", ("sessions", "*")),
        ), grows=True,
    ),
    "hermes": FileFormat(
        f"{_HERE}.hermes", "Hermes session",
        'a database whose table "messages" has "tool_call_id", an object with "session_id" and "platform" or "request"',
        Keeps(Words.RECORDER, cap=True),
        (SQLITE, b'"session_id"', b'"model_config"', b'"session_meta"', b'{"role": "user", "content"'), (
            AgentFolder("Hermes", "HERMES_HOME", ".hermes", (), ("state.db",)),
            AgentFolder("Hermes", "HERMES_HOME", ".hermes", ("sessions",), ("*.json", "*.jsonl")),
            AgentFolder("Hermes", "HERMES_HOME", ".hermes", ("profiles", "*"), ("state.db",)),
        ),
    ),
    "goose": FileFormat(
        f"{_HERE}.goose", "Goose session",
        'a database whose table "messages" has "content_json", or a first line with "working_dir"',
        Keeps(Words.HINT), (SQLITE, b'"working_dir"', b'"created"'),
        tuple(AgentFolder("Goose", variable, root, (*below, "sessions"), ("*.db", "*.jsonl"))
              for variable, root, *below in (
                  ("XDG_DATA_HOME", ".local/share", "goose"), ("GOOSE_PATH_ROOT", ".local/share/goose", "data"),
                  ("", "AppData/Roaming/Block/goose", "data"), ("", "Library/Application Support/Block/goose"))),
    ),
    "crush": FileFormat(
        f"{_HERE}.crush", "Crush database", 'a database whose table "messages" has "parts"', Keeps(Words.RECORDER),
        (SQLITE,), tuple(AgentFolder("Crush", "", "", (*at, ".crush"), ("crush.db",)) for at in ((), ("*",))),
    ),
    "kiro-conversations": FileFormat(
        f"{_HERE}.kiro_conversations", "conversations of Kiro CLI or Amazon Q Developer CLI",
        'a database with the table "conversations_v2", or an object with "conversation_id" and "history"',
        Keeps(Words.HINT, usage=True), (SQLITE, b'"conversation_id"'), FOLDERS["kiro-conversations"],
    ),
    "llm": FileFormat(
        f"{_HERE}.llm_logs", "log of llm", 'a database whose table "responses" or "turns" has "response_json"',
        Keeps(Words.PROVIDER, cap=True, usage=True), (SQLITE,), FOLDERS["llm"],
    ),
    "openai-agents": FileFormat(f"{_HERE}.openai_agents", "session of OpenAI's Agents SDK, or of Agency Swarm",
                                'a table "agent_messages" with "message_data", or a list of items with "callerAgent"',
                                Keeps(Words.HINT), (SQLITE, b'"callerAgent"')),
    "langgraph": FileFormat(
        f"{_HERE}.langgraph", "messages of LangChain, or checkpoints of LangGraph",
        'a list of messages with "lc" or with "type" and "data", or a table "checkpoints" with "checkpoint_ns"',
        Keeps(Words.PROVIDER, usage=True), (SQLITE, b'"lc"', b'"additional_kwargs"'),
    ),
    "ag2": FileFormat(f"{_HERE}.ag2", "log of AG2", 'a database whose table "chat_completions" has "wrapper_id"',
                      Keeps(Words.PROVIDER, cap=True, usage=True), (SQLITE,)),
    "crewai": FileFormat(f"{_HERE}.crewai", "tasks of CrewAI (latest_kickoff_task_outputs.db)",
                         'a database with the table "latest_kickoff_task_outputs"', Keeps(Words.NONE), (SQLITE,),
                         (AgentFolder("CrewAI", "XDG_DATA_HOME", ".local/share", ("*",),
                                      ("latest_kickoff_task_outputs.db",)),)),
    "agno": FileFormat(f"{_HERE}.agno", "runs of Agno",
                       'a database with the columns "session_type" and "agent_data" in one table',
                       Keeps(Words.HINT, cap=True, usage=True), (SQLITE,)),
    "amp": FileFormat(f"{_HERE}.amp", "Amp thread", 'an object with "messages" and an "id" that begins with "T-"',
                      Keeps(Words.RECORDER, usage=True), (b'"T-',),
                      (AgentFolder("Amp", "XDG_DATA_HOME", ".local/share", ("amp", "threads"), ("T-*.json",)),)),
    "chatgpt": FileFormat(f"{_HERE}.chatgpt", "data export of ChatGPT or DeepSeek (conversations.json)",
                          'conversations with "mapping", whose nodes have "message" and "parent"',
                          Keeps(Words.RECORDER), (b'"mapping"',)),
    "claude-ai": FileFormat(f"{_HERE}.claude_ai", "data export of Claude (conversations.json)",
                            'conversations with "chat_messages", which have a "sender"', Keeps(Words.PROVIDER),
                            (b'"chat_messages"',)),
    "librechat": FileFormat(
        f"{_HERE}.librechat", "conversation of LibreChat", 'messages with "messageId" and "isCreatedByUser"',
        Keeps(Words.RECORDER), (b'"isCreatedByUser"',),
    ),
    "zed": FileFormat(f"{_HERE}.zed", "threads of Zed's agent", 'a database whose table "threads" has "data_type"',
                      Keeps(Words.NONE), (SQLITE,), FOLDERS["zed"]),
    "cursor-chats": FileFormat(
        f"{_HERE}.cursor_chats", "chats of Cursor's editor (state.vscdb)", 'a database with the table "cursorDiskKV"',
        Keeps(Words.HINT), (SQLITE,), FOLDERS["cursor-chats"],
    ),
    "ai-studio": FileFormat(f"{_HERE}.ai_studio", "prompt of Google AI Studio", 'an object with "chunkedPrompt"',
                            Keeps(Words.PROVIDER, cap=True), (b'"chunkedPrompt"',)),
    "qwen": FileFormat(
        f"{_HERE}.qwen", "Qwen Code transcript", 'lines with "uuid", "sessionId" and a "message" of "parts"',
        Keeps(Words.HINT, usage=True), (b"sessionId",),
        tuple(AgentFolder("Qwen Code", variable, ".qwen", ("projects", "*", *below), (name,))
              for variable in ("QWEN_RUNTIME_DIR", "QWEN_HOME") for name, *below in (
                  ("*[0-9a-fA-F].jsonl", "chats", "**"), ("agent-*.jsonl", "subagents", "*"))), grows=True,
    ),
    "qwen-stream": FileFormat(f"{_HERE}.qwen_stream", "stream of qwen --output-format stream-json",
                              'a first row with "qwen_code_version"', Keeps(Words.HINT, usage=True),
                              (b'"qwen_code_version"',), grows=True),
    "copilot": FileFormat(
        f"{_HERE}.copilot", "Copilot CLI session",
        'lines with "type", "data" and "parentId", or an object with "sessionId" and "chatMessages"',
        Keeps(Words.RECORDER, cap=True, usage=True), (b'"data"', b'"chatMessages"'),
        (AgentFolder("Copilot CLI", "COPILOT_HOME", ".copilot", ("session-state", "*"), ("events.jsonl",)),
         AgentFolder("Copilot CLI", "COPILOT_HOME", ".copilot", ("history-session-state", "**"),
                     ("*.jsonl", "*.json")),
         AgentFolder("Copilot CLI", "COPILOT_HOME", ".copilot", ("session-state",), ("*.jsonl",))), grows=True,
    ),
    "mitmproxy": FileFormat(
        f"{_HERE}.mitmproxy", "mitmproxy flows", "a flow, as a tnetstring", _ANY_BYTES,
        (b":version", b":response", b":request", b":websocket", b":type", b":id", b":error", b".mitm"),
    ),
    "vcr": FileFormat(
        f"{_HERE}.vcr", "cassette in YAML",
        '"interactions:" or "http_interactions:", a list, "when:" and "then:", or "request:" and "response:"',
        _ANY_BYTES, (b"interactions:", b"!ruby/struct:VCR", b"when:", b"request:", b"mappings:"),
    ),
    "aider": FileFormat(
        f"{_HERE}.aider", "chat or log of aider", "a line # aider chat started at …, or TO LLM …, with the time",
        Keeps(Words.HINT), (b"# aider chat started at ", b"TO LLM ", b"LLM RESPONSE "),
        tuple(AgentFolder("aider", "", "", parts, (".aider.chat.history.md",)) for parts in ((), ("*",))),
    ),
    "httprr": FileFormat(f"{_HERE}.httprr", "httprr trace of Go", 'a line "httprr trace v1"', _ANY_BYTES,
                         (b"httprr trace", b".httprr")),
    "ai-devtools": FileFormat(f"{_HERE}.ai_devtools", "DevTools of Vercel's AI SDK (.devtools/generations.json)",
                              'an object with "runs" and "steps", which have "run_id" and "step_number"', _ANY_BYTES,
                              (b'"runs"',)),
    "mastra": FileFormat(
        f"{_HERE}.mastra", "sessions of Mastra",
        'a database with the table "mastra_ai_spans" or "mastra_messages", or an object with "spans" or "messages"',
        Keeps(Words.RECORDER, cap=True, usage=True), (SQLITE, b'"spanType"', b'"format"'),
    ),
    "voltagent": FileFormat(f"{_HERE}.voltagent", "conversations of VoltAgent",
                            'a database whose table "…_messages" has "format_version" and "parts"',
                            Keeps(Words.NONE, usage=True), (SQLITE,)),
    "pydantic-ai": FileFormat(f"{_HERE}.pydantic_ai", "history of Pydantic AI",
                              'a list of messages, whose "parts" have a "part_kind"', Keeps(Words.PROVIDER, usage=True),
                              (b'"part_kind"',)),
    "promptfoo": FileFormat(
        f"{_HERE}.promptfoo", "results of promptfoo",
        'an object with "evalId", results with "promptIdx", or a database with the table "eval_results"',
        Keeps(Words.RECORDER, cap=True, usage=True), (SQLITE, b'"evalId"', b'"promptIdx"'),
    ),
    "smolagents": FileFormat(f"{_HERE}.smolagents", "memory of smolagents",
                             'a list of steps, the first with "task" and "task_images"',
                             Keeps(Words.PROVIDER, usage=True), (b'"task_images"', b'"action_output"')),
    "llama-index": FileFormat(
        f"{_HERE}.llama_index", "messages of LlamaIndex (chat store, memory, context)",
        'an object with "store", messages with "additional_kwargs" and "blocks", or a table with "key" and "status"',
        Keeps(Words.PROVIDER, usage=True), (SQLITE, b'"additional_kwargs"', b"__is_component"),
    ),
    "gptme": FileFormat(
        f"{_HERE}.gptme", "conversation of gptme", 'a message with "pinned" and "hide"', Keeps(Words.NONE, usage=True),
        (b'"pinned"',), (AgentFolder("gptme", "XDG_DATA_HOME", ".local/share", ("gptme", "logs", "*"),
                                     ("conversation.jsonl",)),), grows=True,
    ),
    "agent-framework": FileFormat(
        f"{_HERE}.agent_framework", "session of Microsoft's Agent Framework",
        'an object with "service_session_id" and "state", or lines of the "type" "message" with "contents"',
        Keeps(Words.NONE), (b'"service_session_id"', b'"contents"'),
    ),
    "fast-agent": FileFormat(
        f"{_HERE}.fast_agent", "history of fast-agent",
        'an object with "messages", which have "role", "content" and "is_template"', Keeps(Words.RECORDER, usage=True),
        (b'"is_template"',), tuple(
            AgentFolder("fast-agent", variable, home, (*below, "sessions", "*"), ("history_*.json",))
            for variable, home, below in (("FAST_AGENT_HOME", ".fast-agent", ()), ("", "", ("*", ".fast-agent")))),
    ),
    "strands": FileFormat(f"{_HERE}.strands", "session of Strands Agents",
                          'an object with "agent_id" and "conversation_manager_state", or "schemaVersion" and "data"',
                          Keeps(Words.HINT, usage=True),
                          (b'"conversation_manager_state"', b'"redact_message"', b'"schemaVersion"'),
                          (AgentFolder("Strands", "", ".strands/sessions", ("*", "agents", "*"), ("agent.json",)),)),
    "adk": FileFormat(
        f"{_HERE}.adk", "session of Google ADK",
        'a database whose table "events" has "invocation_id", an object with "appName" and "events", or those events',
        Keeps(Words.PROVIDER, usage=True), (SQLITE, b'"invocationId"', b'"invocation_id"'),
    ),
    "ai-sdk-result": FileFormat(f"{_HERE}.ai_sdk_result", "result of Vercel's AI SDK",
                                'an object with "steps", which have "finishReason"',
                                Keeps(Words.RECORDER, cap=True, usage=True), (b'"finishReason"',)),
    "ai-sdk-messages": FileFormat(f"{_HERE}.ai_sdk_messages", "messages of Vercel's AI SDK (UIMessage)",
                                  'a list of messages with "id", "role" and "parts", which have a "type"',
                                  Keeps(Words.HINT), (b'"parts"',)),
    "ai-sdk-stream": FileFormat(
        f"{_HERE}.ai_sdk_stream", "stream of Vercel's AI SDK to the browser",
        'events such as "start-step" and "text-delta", or lines such as 0:"text"', Keeps(Words.RECORDER, usage=True),
        (b'-step"', b'-delta"', b'"tool-input-', b'"errorText"', b'"finishReason"', b'0:"', b'f:{'),
    ),
    "http-text": FileFormat(f"{_HERE}.http_text", "HTTP messages as text (curl -i, curl -v, HTTPie)",
                            "a status line such as HTTP/1.1 200 OK, a request, or lines of curl -v", _ANY_BYTES,
                            (b"HTTP/", b"curl: (")),
    "curl-trace": FileFormat(f"{_HERE}.curl_trace", "trace of curl (--trace, --trace-ascii)",
                             "lines such as => Send header, 208 bytes", _ANY_BYTES, (b"=> Send ",)),
    "langfuse": FileFormat(
        f"{_HERE}.langfuse", "Langfuse export", 'an object with "trace" and "observations", or observations',
        Keeps(Words.RECORDER, cap=True, usage=True), (b"observations", b'"traceId"', b'"projectId"', b'"trace_id"'),
    ),
    "langsmith": FileFormat(f"{_HERE}.langsmith", "LangSmith runs", 'runs with "run_type" and "inputs"',
                            Keeps(Words.PROVIDER, cap=True, usage=True), (b'"run_type"',)),
    "roo": FileFormat(
        f"{_HERE}.roo", "Roo Code or Cline task",
        'a list of messages with "role" and "ts", or of rows with "ask" or "say"; ui_messages.json beside it',
        Keeps(Words.HINT, usage=True),
        (b"api_conversation_history", b"claude_messages.json", b"ui_messages", b'"ts"', b".messages.json", b'"agent"'),
        FOLDERS["roo"],
    ),
    "inspect": FileFormat(f"{_HERE}.inspect_ai", "Inspect log",
                          'a ZIP archive with "_journal/", or an object with "eval" and "status"',
                          Keeps(Words.PROVIDER, cap=True, usage=True), (b"PK\x03\x04", b'"eval"'),
                          (AgentFolder("Inspect", "INSPECT_LOG_DIR", "logs", (), ("*.eval",)),)),
    "claude-tap": FileFormat(
        f"{_HERE}.claude_tap", "claude-tap recording",
        'a database whose table "records" has "payload_json", or records with "request_id", "turn" and "duration_ms"',
        _ANY_BYTES, (SQLITE, b"claude_tap", b'"duration_ms"'), (
            AgentFolder("claude-tap", "XDG_DATA_HOME", ".local/share", ("claude-tap",), ("traces.sqlite3",)),
            AgentFolder("claude-tap", "CLOUDTAP_DB", None, (), ("*.sqlite3",)),
        ),
    ),
    "zeroclaw": FileFormat(
        f"{_HERE}.zeroclaw", "ZeroClaw session",
        'a database with the table "acp_messages", or whose table "sessions" has "session_key" and "role", or lines '
        'with "role" and "content" alone', Keeps(Words.HINT), (SQLITE, b'"role"'),
        FOLDERS["zeroclaw"], members=(frozenset({"role", "content"}),),
    ),
    "zeroclaw-trace": FileFormat(
        f"{_HERE}.zeroclaw_trace", "ZeroClaw runtime trace",
        'lines with "zeroclaw" and "schema_version", or with "event_type", "turn_id" and "payload"',
        Keeps(Words.HINT, usage=True), (b"zeroclaw", b'"event_type"'), FOLDERS["zeroclaw-trace"], grows=True,
    ),
    "chat-lines": FileFormat(
        f"{_HERE}.chat_lines", "chat messages in lines (PicoClaw, nanobot, Mistral Vibe)",
        'lines with "role" and "content", and "tool_calls" or members that the agent adds', Keeps(Words.NONE),
        (b'"role"',), (
            AgentFolder("PicoClaw", "PICOCLAW_HOME", ".picoclaw", ("workspace", "sessions")),
            *(AgentFolder("nanobot", "", ".nanobot", parts)
              for parts in (("sessions", "*"), ("workspace", "sessions"), ("sessions",))),
            AgentFolder("Mistral Vibe", "VIBE_HOME", ".vibe", ("logs", "session", "*"), ("messages.jsonl",)),
        ), grows=True, members=(frozenset({"role", "content"}),),
    ),
    "vibe": FileFormat(
        f"{_HERE}.vibe", "Mistral Vibe journal", 'lines with "recovery_journal_record_version" and "payload"',
        Keeps(Words.RECORDER, usage=True), (b"recovery_journal_record_version",), grows=True,
        folders=(AgentFolder("Mistral Vibe", "VIBE_HOME", ".vibe", ("logs", "session", "unified", "*", "journal")),),
    ),
    "botnexus": FileFormat(
        f"{_HERE}.botnexus", "BotNexus session",
        'a database whose table "session_history" has "tool_call_id", or lines with "toolCallId"',
        Keeps(Words.HINT), (SQLITE, b"isCompactionSummary", b"isCrashSentinel", b"toolCallId"),
        FOLDERS["botnexus"],
    ),
    "litellm": FileFormat(f"{_HERE}.litellm", "LiteLLM log",
                          'an object with "call_type", and "model_parameters" or "spend"',
                          Keeps(Words.RECORDER, cap=True, usage=True), (b'"call_type"',)),
    "continue": FileFormat(
        f"{_HERE}.continue_dev", "Continue session", 'an object with "history", a list of items with "message"',
        Keeps(Words.NONE, cap=True, usage=True), (b'"history"',), FOLDERS["continue"],
    ),
    "vscode-chat": FileFormat(
        f"{_HERE}.vscode_chat", "VS Code chat", 'an object with "requests", or lines with "kind", "k" and "v"',
        Keeps(Words.HINT, usage=True), (b'"requests"', b'{"kind"', b'"k"'), FOLDERS["vscode-chat"],
    ),
    "chat-history": FileFormat(
        f"{_HERE}.chat_history", "messages of Haystack, or chat history of Semantic Kernel",
        'a list of messages with "meta" and "name", or "messages" with "content_type" and "items"',
        Keeps(Words.RECORDER, usage=True), (b'"meta"', b'"content_type"'),
    ),
    "known": FileFormat(f"{_HERE}.known_formats", "formats that are known and not read", "", Keeps(Words.NONE)),
    "pairs": FileFormat(f"{_HERE}.pairs", "requests and responses in JSON",
                        'objects with "request" and "response", or of nock', _ANY_BYTES, begins=True),
    "body": FileFormat(
        f"{_HERE}.body", "response body", "a response of an API that is read, or its event stream",
        Keeps(Words.PROVIDER, usage=True, wire=True), begins=True,
        most=50,  # it tries all wire formats: 12 ms that `pairs` saves
    ),
}
FOLDERS_BESIDE = sorted({row.beside.split("/*")[0] for row in IMPORTERS.values() if row.beside})
"""The folders, relative to a file, whose files may be read with it."""
EXPECTED = "expected a HAR, a session file, response bodies or request/response pairs"
"""The end of the message about a file in no known format."""
