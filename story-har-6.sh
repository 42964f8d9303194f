curl -sS --no-buffer -X POST https://api.openai.com/v1/chat/completions \
  -H 'Authorization: '"$API_KEY" \
  -H 'content-type: application/json' \
  --data-binary '{"model": "gpt-5-mini", "messages": [{"role": "user", "content": "Put it into report.md."}], "tools": [{"type": "function", "function": {"name": "write_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"]}}}], "max_tokens": 64}'
