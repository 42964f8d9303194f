"""Base URLs of a running provider, as each SDK takes them, and how that is said. Data only."""

from __future__ import annotations

from collections.abc import Mapping

PATHS: Mapping[str, str] = {
    "openai_chat": "/v1",
    "openai_responses": "/v1",
    "anthropic_messages": "",
    "gemini_generate": "",
    "bedrock_converse": "",
    "ollama_chat": "",
}
"""Wire format -> what follows the address in the base URL."""

POINTING: Mapping[str, str] = {
    "openai_chat": 'openai.OpenAI(base_url="{base}", api_key="any")',
    "openai_responses": 'openai.OpenAI(base_url="{base}", api_key="any")',
    "anthropic_messages": 'anthropic.Anthropic(base_url="{base}", api_key="any")',
    "gemini_generate": 'genai.Client(api_key="any", http_options={{"base_url": "{base}"}})',
    "bedrock_converse": 'boto3.client("bedrock-runtime", endpoint_url="{base}", region_name="us-east-1", '
                        'aws_access_key_id="any", aws_secret_access_key="any")',
    "ollama_chat": 'ollama.Client(host="{base}")',
}
"""Wire format -> the client that asks this provider."""


def bases(url: str) -> dict[str, str]:
    """Wire format -> base URL."""
    return {api: url + path for api, path in PATHS.items()}


def pointing(url: str) -> dict[str, str]:
    """Wire format -> Python that makes the client."""
    return {api: POINTING[api].format(base=base) for api, base in bases(url).items()}
