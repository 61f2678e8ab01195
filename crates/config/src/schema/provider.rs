//! The shape of `providers.<name>`, its models, and `mcpServers.<name>`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// A model vendor or server. Keys of known vendors also come from variables such as `ANTHROPIC_API_KEY`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Provider {
    /// The API that the server speaks: `openai-responses`, `openai-chat`, `anthropic` or another of `dragoman docs providers`.
    #[schemars(extend("examples" = ["openai-chat"]))]
    api: String,
    /// The address of the server. Also from `NAME_API_URL`.
    #[schemars(extend("examples" = ["http://127.0.0.1:8000/v1"]))]
    url: String,
    /// The key, best as a reference: `${env:NAME}`, `${file:path}`, `${cmd:line}` or `${netrc:machine}`. Also from
    /// `NAME_API_KEY`, and from `dragoman login`.
    #[schemars(extend("examples" = ["${cmd:pass show house}"]))]
    key: String,
    /// Hosts, with their port where they have one, that a project may name as the address and that get your key all the same;
    /// with `http://` before them also unencrypted. Your key, and variables and files of yours that a project refers to,
    /// otherwise go to the vendor's address and to those of your own settings. Only in your own settings.
    #[schemars(extend("examples" = [["gateway.example.com"]]))]
    key_hosts: Vec<String>,
    /// The models, by the name that you choose for them.
    #[schemars(extend("examples" = [{"qwen": {"limit": {"context": 32768}}}]))]
    models: BTreeMap<String, ModelEntry>,
    /// Headers that every request carries.
    #[schemars(extend("examples" = [{"X-Team": "compilers"}]))]
    extra_headers: BTreeMap<String, String>,
    /// Members that every request body carries.
    #[schemars(extend("examples" = [{"temperature": 0.2}]))]
    extra_payload: Map<String, Value>,
    /// Whether the server is asked for its models. `false` also leaves out the built-in list.
    #[schemars(extend("examples" = [false]))]
    fetch_models: bool,
    /// The path of requests after the address, in place of that of the API.
    #[schemars(extend("examples" = ["/v2/chat"]))]
    completion_url_relative_path: String,
    /// The server for signing in with a code, for GitHub Enterprise.
    auth: AuthSection,
    /// Requests that may run at the same time to this provider.
    #[schemars(range(min = 1, max = 1000), extend("examples" = [2]))]
    concurrency: u64,
    /// Whether the provider needs a key.
    #[schemars(extend("x-unsupported" = true))]
    requires_auth: bool,
    /// The text before reasoning in an answer.
    #[schemars(extend("x-unsupported" = true))]
    think_tag_start: String,
    /// The text after reasoning in an answer.
    #[schemars(extend("x-unsupported" = true))]
    think_tag_end: String,
    /// How long the provider keeps its cache.
    #[schemars(extend("x-unsupported" = true))]
    cache_retention: String,
    /// The HTTP client of ECA.
    #[schemars(extend("x-unsupported" = true))]
    http_client: Value,
    /// Rules for retries. Retries follow the status and the headers of the answer.
    #[schemars(extend("x-unsupported" = true))]
    retry_rules: Vec<Value>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct AuthSection {
    /// The address of the server.
    #[schemars(extend("examples" = ["https://github.example.com"]))]
    url: String,
    /// The client that signs in.
    #[schemars(extend("examples" = ["Iv1.0123456789abcdef"]))]
    client_id: String,
}

/// One model.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct ModelEntry {
    /// The provider's name for the model, where it differs from yours.
    #[schemars(extend("examples" = ["Qwen/Qwen3-Coder-30B"]))]
    model_name: String,
    /// Members that requests for this model carry, above those of the provider.
    #[schemars(extend("examples" = [{"reasoning": {"effort": "high"}}]))]
    extra_payload: Map<String, Value>,
    /// Headers that requests for this model carry.
    #[schemars(extend("examples" = [{"X-Tier": "batch"}]))]
    extra_headers: BTreeMap<String, String>,
    /// Limits in tokens, where the built-in list does not know them.
    limit: LimitSection,
    /// Prices in dollars per million tokens. Without a price no budget can hold.
    cost: CostSection,
    /// Payloads to choose from, by name; `{}` takes a built-in one away.
    #[schemars(extend("examples" = [{"high": {"reasoning": {"effort": "high"}}}]))]
    variants: BTreeMap<String, Map<String, Value>>,
    /// How much reasoning is sent back: all of it, as the API wants it.
    #[schemars(extend("x-unsupported" = true))]
    reasoning_history: String,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LimitSection {
    /// Tokens of the context window.
    #[schemars(range(min = 1), extend("examples" = [32768]))]
    context: u64,
    /// Tokens of one answer.
    #[schemars(range(min = 1), extend("examples" = [8192]))]
    output: u64,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct CostSection {
    /// The price of input.
    #[schemars(range(min = 0.0), extend("examples" = [3]))]
    input: f64,
    /// The price of output.
    #[schemars(range(min = 0.0), extend("examples" = [15]))]
    output: f64,
    /// The price of input that comes from the provider's cache.
    #[schemars(range(min = 0.0), extend("examples" = [0.3]))]
    cache_read: f64,
    /// The price of input that is written to the provider's cache.
    #[schemars(range(min = 0.0), extend("examples" = [3.75]))]
    cache_write: f64,
}

/// One MCP server: `command` for a program, or `url` for an address.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct McpServerEntry {
    /// Whose login is used; a login holds for the address of the server in every project.
    #[schemars(extend("x-unsupported" = true))]
    auth_scope: String,
    /// The program to start.
    #[schemars(extend("examples" = ["npx"]))]
    command: String,
    /// The arguments of the program.
    #[schemars(extend("examples" = [["-y", "@modelcontextprotocol/server-memory"]]))]
    args: Vec<String>,
    /// Variables of the program.
    #[schemars(extend("examples" = [{"TOKEN": "${env:MEMORY_TOKEN}"}]))]
    env: BTreeMap<String, String>,
    /// The address of a server over HTTP.
    #[schemars(extend("examples" = ["https://mcp.example.com/mcp"]))]
    url: String,
    /// Headers of requests to the address.
    #[schemars(extend("examples" = [{"Authorization": "Bearer ${env:MCP_TOKEN}"}]))]
    headers: BTreeMap<String, String>,
    /// Hosts, with their port where they have one, that a project may name as the address and that get your headers and
    /// secrets all the same. Only in your own settings.
    #[schemars(extend("examples" = [["mcp.example.com"]]))]
    key_hosts: Vec<String>,
    /// Whether the server stays off until it is switched on in a chat.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    disabled: bool,
    /// Whether the program has the network. A server of a project has package registries alone, whatever it says.
    #[schemars(extend("default" = true), extend("examples" = [false]))]
    network: bool,
    /// What the program is granted beyond the rules of the sandbox; not for a server of a project. See `dragoman docs sandbox`.
    #[schemars(extend("examples" = [["write:/home/me/notes"]]))]
    grants: Vec<String>,
    /// Whether the server may ask for answers of your model (sampling). You are asked each time, and the chat pays. Not for
    /// a server of a project.
    #[schemars(extend("default" = false), extend("examples" = [true]))]
    sampling: bool,
    /// The client of an OAuth login that you registered yourself.
    #[schemars(extend("examples" = ["dragoman-on-my-laptop"]))]
    client_id: String,
    /// The secret of that client.
    #[schemars(extend("examples" = ["${env:MCP_CLIENT_SECRET}"]))]
    client_secret: String,
    /// The authorization server that the login must go to, by its exact address. Without it the first login decides; another
    /// one that the server names later gets no secret before you agree.
    #[schemars(extend("examples" = ["https://id.example.com"]))]
    issuer: String,
    /// The name under which a client is registered.
    #[schemars(extend("default" = "Dragoman"), extend("examples" = ["Dragoman at work"]))]
    client_name: String,
    /// The port that the browser comes back to after a login (`http://127.0.0.1:PORT/callback`); any free one by default.
    #[schemars(range(min = 1, max = 65_535), extend("examples" = [8123]))]
    oauth_port: u16,
    /// How a token is obtained: `authorization_code` by a person with a browser, `client_credentials` with `clientId` and
    /// `clientSecret` or `privateKey`, `jwt_bearer` with `clientId` and `assertion` or
    /// `identityToken`. The last two need no person.
    #[schemars(extend("enum" = ["authorization_code", "client_credentials", "jwt_bearer"]),
        extend("default" = "authorization_code"), extend("examples" = ["client_credentials"]))]
    grant_type: String,
    /// A PKCS #8 key for P-256 (PEM) that proves the client instead of a secret.
    #[schemars(extend("examples" = ["${file:~/.ssh/mcp-client.pem}"]))]
    private_key: String,
    /// A token of another issuer that stands for this machine, for `jwt_bearer`.
    #[schemars(extend("examples" = ["${file:/run/secrets/workload-token}"]))]
    assertion: String,
    /// The login (an ID token) of your company's identity provider, for `jwt_bearer`: it is exchanged there for an assertion.
    #[schemars(extend("examples" = ["${file:/run/secrets/id-token}"]))]
    identity_token: String,
    /// The token endpoint of the identity provider.
    #[schemars(extend("examples" = ["https://id.example.com/token"]))]
    identity_endpoint: String,
    /// The client at the identity provider.
    #[schemars(extend("examples" = ["dragoman"]))]
    identity_client_id: String,
}
