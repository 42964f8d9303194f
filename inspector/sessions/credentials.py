"""The credentials that are known by their looks: a table of forms, and names whose values are credentials. Data only.

A form is written as a template: literal characters, and in braces an alphabet with how many of it. `{a20}` are 20
letters or digits, `{a20+}` 20 or more, `{a20-40}` from 20 to 40. The pattern that finds a form and the examples that
tests plant are both made from its template, so that neither can differ from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ALPHABETS: Mapping[str, str] = {
    "a": "A-Za-z0-9",
    "b": "A-Za-z0-9_-",
    "B": "A-Za-z0-9+/",
    "c": "A-Za-z0-9_~.-",
    "d": "0-9",
    "h": "0-9a-f",
    "H": "0-9A-F",
    "l": "a-z0-9",
    "U": "A-Z0-9",
}
"""Letter of a template -> the characters it stands for, as a class of a regular expression."""


class Form(NamedTuple):
    """One kind of credential."""

    name: str
    """What a mask says that it hides."""
    template: str
    source: str
    """Who documents the form, or where it is seen."""
    kind: str = "model"
    """What it opens: model, cloud, code host, chat, payment, registry, database, service, protocol."""


FORMS: tuple[Form, ...] = (
    # Before the shorter forms that also match them: the first row that matches names the mask.
    Form("OpenAI project key", "sk-proj-{b20+}", "OpenAI: project API keys"),
    Form("OpenAI service account key", "sk-svcacct-{b20+}", "OpenAI: service accounts"),
    Form("OpenAI admin key", "sk-admin-{b20+}", "OpenAI: admin API keys"),
    Form("Anthropic API key", "sk-ant-api{d2}-{b32+}", "Anthropic console"),
    Form("Anthropic OAuth token", "sk-ant-o{l2}{d2}-{b32+}", "Claude Code: setup-token (oat01, ort01)"),
    Form("Anthropic admin key", "sk-ant-admin{d2}-{b32+}", "Anthropic Admin API"),
    Form("Anthropic session key", "sk-ant-sid{d2}-{b32+}", "claude.ai cookies"),
    Form("Anthropic key", "sk-ant-{b20+}", "Anthropic, earlier keys"),
    Form("OpenRouter key", "sk-or-v{d1}-{h32+}", "OpenRouter"),
    Form("Langfuse secret key", "sk-lf-{h8}-{h4}-{h4}-{h4}-{h12}", "Langfuse"),
    Form("Helicone key", "sk-helicone-{b20+}", "Helicone"),
    Form("Google API key", "AIza{b35}", "Google Cloud: API keys"),
    Form("Google AQ API key", "AQ.{b40+}", "Google AI Studio: authorization keys"),
    Form("Groq key", "gsk_{a40+}", "Groq console"),
    Form("xAI key", "xai-{a60+}", "xAI console"),
    Form("Hugging Face token", "hf_{a30+}", "Hugging Face: user access tokens"),
    Form("Hugging Face organization token", "api_org_{a30+}", "Hugging Face: organization tokens"),
    Form("Replicate token", "r8_{a37+}", "Replicate"),
    Form("Perplexity key", "pplx-{a40+}", "Perplexity"),
    Form("Fireworks key", "fw_{a20+}", "Fireworks AI"),
    Form("Cerebras key", "csk-{a40+}", "Cerebras"),
    Form("NVIDIA key", "nvapi-{b50+}", "NVIDIA NIM"),
    Form("Together key", "tgp_v{d1}_{b40+}", "Together AI"),
    Form("ElevenLabs key", "sk_{h48}", "ElevenLabs"),
    Form("LangSmith key", "lsv2_{l2}_{h32}_{h10}", "LangSmith: personal (pt) and service (sk) keys"),
    Form("Pinecone key", "pcsk_{b40+}", "Pinecone"),
    Form("Tavily key", "tvly-{b20+}", "Tavily"),
    Form("Voyage key", "pa-{b43}", "Voyage AI"),
    Form("Anyscale key", "esecret_{a25+}", "Anyscale"),
    Form("Vercel AI Gateway key", "vck_{a40+}", "Vercel AI Gateway"),
    Form("Jina key", "jina_{a50+}", "Jina AI"),
    Form("Firecrawl key", "fc-{h32}", "Firecrawl"),
    Form("Weights & Biases key", "wandb_v{d1}_{b40+}", "Weights & Biases"),
    Form("Zhipu key", "{h32}.{a16}", "Zhipu AI: id and secret"),
    Form("AWS access key id", "AKIA{U16}", "AWS IAM: unique identifiers", "cloud"),
    Form("AWS temporary key id", "ASIA{U16}", "AWS STS", "cloud"),
    Form("AWS bearer token id", "ABIA{U16}", "AWS STS service bearer tokens", "cloud"),
    Form("AWS context credential id", "ACCA{U16}", "AWS IAM: context-specific credentials", "cloud"),
    Form("Amazon Bedrock key", "ABSK{B60+}", "Amazon Bedrock: long-term API keys", "cloud"),
    Form("Amazon Bedrock short-term key", "bedrock-api-key-{B40+}", "Amazon Bedrock: short-term API keys", "cloud"),
    Form("Google OAuth token", "ya29.{b30+}", "Google OAuth 2.0: access tokens", "cloud"),
    Form("Google refresh token", "1//0{b30+}", "Google OAuth 2.0: refresh tokens", "cloud"),
    Form("Google client secret", "GOCSPX-{b28}", "Google OAuth 2.0: clients", "cloud"),
    Form("Azure client secret", "{c3}8Q~{c31-34}", "Microsoft Entra ID: app secrets", "cloud"),
    Form("Azure storage key", "AccountKey={B86}==", "Azure Storage: connection strings", "cloud"),
    Form("Azure shared access key", "SharedAccessKey={B43}=", "Azure Service Bus, Event Hubs, IoT Hub", "cloud"),
    Form("Alibaba Cloud key id", "LTAI{a16-24}", "Alibaba Cloud RAM", "cloud"),
    Form("Tencent Cloud key id", "AKID{a32-36}", "Tencent Cloud CAM", "cloud"),
    Form("DigitalOcean token", "dop_v1_{h64}", "DigitalOcean: personal access tokens", "cloud"),
    Form("DigitalOcean OAuth token", "doo_v1_{h64}", "DigitalOcean: OAuth", "cloud"),
    Form("DigitalOcean refresh token", "dor_v1_{h64}", "DigitalOcean: OAuth", "cloud"),
    Form("Cloudflare origin key", "v1.0-{h24}-{h100+}", "Cloudflare: Origin CA", "cloud"),
    Form("Heroku key", "HRKU-{b36+}", "Heroku", "cloud"),
    Form("Fly.io token", "fm2_{B60+}", "Fly.io macaroons", "cloud"),
    Form("Fly.io access token", "fo1_{b40+}", "Fly.io", "cloud"),
    Form("Netlify token", "nfp_{a36+}", "Netlify", "cloud"),
    Form("Supabase token", "sbp_{h40}", "Supabase: personal access tokens", "cloud"),
    Form("Supabase secret key", "sb_secret_{b20+}", "Supabase: secret API keys", "cloud"),
    Form("Doppler token", "dp.{l2}.{a40+}", "Doppler (pt, st, ct, sa)", "cloud"),
    Form("Vault token", "hvs.{b24+}", "HashiCorp Vault: service tokens", "cloud"),
    Form("Vault batch token", "hvb.{b24+}", "HashiCorp Vault: batch tokens", "cloud"),
    Form("Terraform Cloud token", "{a14}.atlasv1.{b60+}", "HCP Terraform", "cloud"),
    Form("Pulumi token", "pul-{h40}", "Pulumi Cloud", "cloud"),
    Form("1Password token", "ops_eyJ{b60+}", "1Password service accounts", "cloud"),
    Form("age key", "AGE-SECRET-KEY-1{U58}", "age: identity files", "cloud"),
    Form("GitHub token", "ghp_{a30+}", "GitHub: personal access tokens (classic)", "code host"),
    Form("GitHub OAuth token", "gho_{a30+}", "GitHub: OAuth apps", "code host"),
    Form("GitHub user token", "ghu_{a30+}", "GitHub Apps: user-to-server", "code host"),
    Form("GitHub server token", "ghs_{a30+}", "GitHub Apps: server-to-server, Actions", "code host"),
    Form("GitHub refresh token", "ghr_{a30+}", "GitHub Apps", "code host"),
    Form("GitHub fine-grained token", "github_pat_{a22}_{a59}", "GitHub: fine-grained tokens", "code host"),
    Form("GitLab token", "glpat-{c20+}", "GitLab: personal access tokens", "code host"),
    Form("GitLab deploy token", "gldt-{c20+}", "GitLab", "code host"),
    Form("GitLab runner token", "glrt-{c20+}", "GitLab runners", "code host"),
    Form("GitLab job token", "glcbt-{c20+}", "GitLab CI jobs", "code host"),
    Form("GitLab trigger token", "glptt-{c20+}", "GitLab pipelines", "code host"),
    Form("Bitbucket app password", "ATBB{a24+}", "Bitbucket Cloud", "code host"),
    Form("Atlassian token", "ATATT3{b60+}", "Atlassian: API tokens", "code host"),
    Form("Sourcegraph token", "sgp_{h40}", "Sourcegraph", "code host"),
    Form("CircleCI token", "CCIPAT_{a20+}_{h40}", "CircleCI: personal tokens", "code host"),
    Form("Buildkite token", "bkua_{h40}", "Buildkite", "code host"),
    Form("SonarQube token", "squ_{h40}", "SonarQube: user tokens", "code host"),
    Form("Slack bot token", "xoxb-{d10+}-{b20+}", "Slack: token types", "chat"),
    Form("Slack user token", "xoxp-{d10+}-{b20+}", "Slack: token types", "chat"),
    Form("Slack session token", "xoxs-{d10+}-{b20+}", "Slack: token types", "chat"),
    Form("Slack client token", "xoxc-{d10+}-{b20+}", "Slack: browser sessions", "chat"),
    Form("Slack configuration token", "xoxe.xoxp-{d1}-{b40+}", "Slack: app configuration", "chat"),
    Form("Slack refresh token", "xoxe-{d1}-{b40+}", "Slack: token rotation", "chat"),
    Form("Slack app token", "xapp-{d1}-{U9+}-{d10+}-{h30+}", "Slack: app-level tokens", "chat"),
    Form("Slack webhook", "hooks.slack.com/services/T{U8+}/B{U8+}/{a20+}", "Slack: incoming webhooks", "chat"),
    Form("Discord webhook", "discord.com/api/webhooks/{d17-20}/{b60+}", "Discord: webhooks", "chat"),
    Form("Discord bot token", "M{b23-27}.{b6}.{b27-40}", "Discord: bot tokens", "chat"),
    Form("Telegram bot token", "{d8-10}:AA{b33}", "Telegram Bot API", "chat"),
    Form("Twilio key", "SK{h32}", "Twilio: API keys", "chat"),
    Form("SendGrid key", "SG.{b22}.{b43}", "SendGrid", "chat"),
    Form("Mailgun key", "key-{h32}", "Mailgun", "chat"),
    Form("Mailchimp key", "{h32}-us{d1-2}", "Mailchimp", "chat"),
    Form("Brevo key", "xkeysib-{h64}-{a16}", "Brevo", "chat"),
    Form("Resend key", "re_{a8}_{a24}", "Resend", "chat"),
    Form("Stripe live key", "sk_live_{a16+}", "Stripe: API keys", "payment"),
    Form("Stripe test key", "sk_test_{a16+}", "Stripe: API keys", "payment"),
    Form("Stripe restricted key", "rk_live_{a16+}", "Stripe: restricted keys", "payment"),
    Form("Stripe restricted test key", "rk_test_{a16+}", "Stripe: restricted keys", "payment"),
    Form("webhook secret", "whsec_{B24+}", "Stripe, Svix: webhook signing", "payment"),
    Form("Square token", "sq0atp-{b22}", "Square: access tokens", "payment"),
    Form("Square secret", "sq0csp-{b43}", "Square: OAuth secrets", "payment"),
    Form("Shopify token", "shpat_{h32}", "Shopify: access tokens", "payment"),
    Form("Shopify secret", "shpss_{h32}", "Shopify: shared secrets", "payment"),
    Form("Shopify app password", "shppa_{h32}", "Shopify: private apps", "payment"),
    Form("PayPal Braintree token", "access_token$production${l16}${h32}", "Braintree", "payment"),
    Form("Plaid token", "access-production-{h8}-{h4}-{h4}-{h4}-{h12}", "Plaid", "payment"),
    Form("Razorpay key", "rzp_live_{a14}", "Razorpay", "payment"),
    Form("Flutterwave key", "FLWSECK-{l32}-X", "Flutterwave", "payment"),
    Form("npm token", "npm_{a36}", "npm: access tokens", "registry"),
    Form("PyPI token", "pypi-AgEI{b50+}", "PyPI: API tokens", "registry"),
    Form("RubyGems key", "rubygems_{h48}", "RubyGems", "registry"),
    Form("crates.io token", "cio{a32}", "crates.io", "registry"),
    Form("Docker Hub token", "dckr_pat_{b27}", "Docker Hub", "registry"),
    Form("NuGet key", "oy2{l43}", "NuGet", "registry"),
    Form("JFrog key", "AKCp{a69}", "JFrog Artifactory", "registry"),
    Form("Clojars token", "CLOJARS_{h60}", "Clojars", "registry"),
    Form("PlanetScale token", "pscale_tkn_{b32+}", "PlanetScale", "database"),
    Form("PlanetScale password", "pscale_pw_{b32+}", "PlanetScale", "database"),
    Form("Neon key", "napi_{l60+}", "Neon", "database"),
    Form("Databricks token", "dapi{h32}", "Databricks", "database"),
    Form("Airtable token", "pat{a14}.{h64}", "Airtable", "database"),
    Form("Prisma key", "prisma+postgres://accelerate.prisma-data.net/?api_key={c40+}", "Prisma Accelerate", "database"),
    Form("Notion token", "ntn_{a40+}", "Notion: integrations", "service"),
    Form("Notion integration secret", "secret_{a43}", "Notion: integrations, earlier", "service"),
    Form("Linear key", "lin_api_{a32+}", "Linear", "service"),
    Form("Postman key", "PMAK-{h24}-{h34}", "Postman", "service"),
    Form("Figma token", "figd_{b40+}", "Figma", "service"),
    Form("Sentry token", "sntrys_{b40+}", "Sentry: organization tokens", "service"),
    Form("Sentry user token", "sntryu_{h64}", "Sentry: user tokens", "service"),
    Form("Grafana token", "glsa_{a32}_{h8}", "Grafana: service accounts", "service"),
    Form("Grafana Cloud token", "glc_eyJ{B40+}", "Grafana Cloud", "service"),
    Form("New Relic key", "NRAK-{U27}", "New Relic: user keys", "service"),
    Form("PostHog key", "phx_{a40+}", "PostHog: personal keys", "service"),
    Form("Mapbox secret", "sk.eyJ{b40+}.{b20+}", "Mapbox", "service"),
    Form("JWT", "eyJ{b8+}.eyJ{b8+}.{b2+}", "RFC 7519", "protocol"),
)
"""First match wins. Forms that need more than a template (private keys, Basic, Bearer, addresses) are in `redact`."""

NAMES: tuple[str, ...] = (
    "api_key", "api_token", "api_secret", "app_key", "app_secret", "access_key", "access_token", "account_key",
    "auth_key", "auth_token", "authentication_token", "authorization", "authorization_token", "bearer_token",
    "client_secret", "client_key_data", "connection_string", "consumer_secret", "cookie", "credentials_json",
    "deploy_key", "encryption_key", "hmac_key", "hmac_secret", "id_token", "jwt_secret", "license_key", "master_key",
    "oauth_token", "personal_access_token", "private_key", "private_token", "proxy_authorization", "refresh_token",
    "secret", "secret_access_key", "secret_key", "secret_token", "security_token", "session_token", "set_cookie",
    "shared_access_key", "shared_secret", "signing_key", "signing_secret", "ssh_key", "storage_key", "subscription_key",
    "webhook_secret", "x_api_key", "x_auth_token",
)
"""Names of headers, JSON members, arguments and variables whose value is a credential, where it looks random.

Words are joined by `_`, `-`, nothing or a capital letter: `api_key` is also `api-key`, `apiKey` and `APIKEY`. A name
may have words before it (`OPENAI_API_KEY`). Not `token`, `token_type`, `credentialType`, `prompt_cache_key`, `key`:
they name other things.
"""

PASSWORDS: tuple[str, ...] = ("password", "passwd", "passphrase", "pwd", "pgpassword", "mysql_pwd", "userpassword")
"""Names whose value is a credential however short it is."""

VARIABLES: tuple[str, ...] = ("token", "key")
"""Last words of an environment variable in capitals (`SLACK_TOKEN=…`) whose value is a credential, where it looks
random."""

NO_VARIABLES: tuple[str, ...] = ("CACHE_KEY", "PRIMARY_KEY", "FOREIGN_KEY", "SORT_KEY", "PARTITION_KEY",
    "PUBLIC_KEY", "NEXT_TOKEN", "PAGE_TOKEN")
"""Ends of such names that hold no credential."""
