//! Accounts with providers: `providers/list`, `login`, `loginInput`, `logout`, `updated`.
//!
//! Invariants: a key goes to the engine and nowhere else; `providers/updated` is sent to a client that asked for the list,
//! for providers that changed.

use domain::provider::{AccountState, KeySource, LoginStep, ProviderStatus as Account};
use domain::{Command, Failure};

use crate::reply::Reply;
use crate::server::Server;
use crate::wire::Empty;
use crate::wire::providers::{
    InputField, LoginAction, LoginInputParams, LoginMethod, LoginMethods, LoginParams, ModelCapabilities,
    ModelCost, ProviderAuth, ProviderList, ProviderModel, ProviderStatus,
};
use crate::wire::requests::{ProvidersList, ProvidersLogin, ProvidersLoginInput, ProvidersLogout};

pub(crate) async fn list(server: &mut Server, _params: Empty, reply: Reply<ProvidersList>) {
    let done = |server: &mut Server, accounts: Result<Vec<Account>, Failure>| {
        let list = accounts.map(|accounts| {
            let providers: Vec<ProviderStatus> = accounts.into_iter().map(status).collect();
            let sent = providers.iter().map(|provider| (provider.id.clone(), provider.clone()));
            server.sent_providers = Some(sent.collect());
            ProviderList { providers }
        });
        server.respond(reply, list);
    };
    server.engine.call(|reply| Command::Providers { reply }, done).await;
}

pub(crate) async fn login(server: &mut Server, params: LoginParams, reply: Reply<ProvidersLogin>) {
    let Some(provider) = params.provider else { return reply.missing("provider") };
    let method = params.method;
    let done = |server: &mut Server, step: Result<LoginStep, Failure>| {
        server.respond(reply, step.map(action));
    };
    server.engine.call(|reply| Command::Login { provider, method, reply }, done).await;
}

pub(crate) async fn login_input(
    server: &mut Server,
    params: LoginInputParams,
    reply: Reply<ProvidersLoginInput>,
) {
    let Some(provider) = params.provider else { return reply.missing("provider") };
    let fields: Vec<(String, String)> = params.data.into_iter().collect();
    let done = |server: &mut Server, done: Result<(), Failure>| {
        server.respond(reply, done.map(|()| LoginAction::Done));
    };
    server.engine.call(|reply| Command::FinishLogin { provider, fields, reply }, done).await;
}

pub(crate) async fn logout(server: &mut Server, params: LoginParams, reply: Reply<ProvidersLogout>) {
    let Some(provider) = params.provider else { return reply.missing("provider") };
    let done = |server: &mut Server, done: Result<(), Failure>| {
        server.respond(reply, done.map(|()| Empty {}));
    };
    server.engine.call(|reply| Command::Logout { provider, reply }, done).await;
}

/// Sends the providers that changed.
pub(crate) fn update(server: &mut Server) {
    let (Some(commands), true) = (server.engine.commands(), server.sent_providers.is_some()) else { return };
    server.engine.later(
        async move { commands.call(|reply| Command::Providers { reply }).await },
        |server, accounts| {
            for provider in accounts.unwrap_or_default().into_iter().map(status) {
                let Some(sent) = &mut server.sent_providers else { return };
                if sent.get(&provider.id) != Some(&provider) {
                    sent.insert(provider.id.clone(), provider.clone());
                    server.notify(&provider);
                }
            }
        },
    );
}

fn status(account: Account) -> ProviderStatus {
    let (source, env_var) = match account.source {
        Some(KeySource::Settings) => (Some("config"), None),
        Some(KeySource::Login) => (Some("login"), None),
        Some(KeySource::Environment(name)) => (Some("env"), Some(name)),
        None => (None, None),
    };
    let by_device = account.methods.iter().any(|method| method.key == "device");
    let methods: Vec<LoginMethod> = account.methods.into_iter().map(method).collect();
    let prefix = format!("{}/", account.id);
    ProviderStatus {
        label: account.id.clone(),
        configured: account.is_configured,
        auth: ProviderAuth {
            status: match account.state {
                AccountState::LoggedIn => "authenticated",
                AccountState::LoggedOut => "unauthenticated",
                AccountState::Local => "local",
            },
            kind: source.map(|_| if by_device { "oauth" } else { "api-key" }),
            source,
            env_var,
        },
        login: (!methods.is_empty()).then_some(LoginMethods { methods }),
        models: account.models.into_iter().map(|model| provider_model(&prefix, model)).collect(),
        id: account.id,
    }
}

fn method(method: domain::provider::LoginMethod) -> LoginMethod {
    LoginMethod { key: method.key, label: method.label }
}

fn provider_model(prefix: &str, model: domain::model::ModelInfo) -> ProviderModel {
    ProviderModel {
        id: model.id.strip_prefix(prefix).unwrap_or(&model.id).to_owned(),
        capabilities: ModelCapabilities {
            reason: model.reasoning,
            vision: model.images,
            tools: model.tools,
            web_search: false,
        },
        cost: model.price.map(|price| ModelCost { input: price.input, output: price.output }),
    }
}

fn action(step: LoginStep) -> LoginAction {
    match step {
        LoginStep::Choose { methods } => {
            LoginAction::ChooseMethod { methods: methods.into_iter().map(method).collect() }
        }
        LoginStep::DeviceCode { url, code } => {
            let message = format!("Open {url} and type the code {code}.");
            LoginAction::DeviceCode { url, code, message }
        }
        LoginStep::Fields(fields) => {
            let field = |field: domain::provider::LoginField| InputField {
                key: field.key,
                label: field.label,
                kind: if field.is_secret { "secret" } else { "text" },
            };
            LoginAction::Input { fields: fields.into_iter().map(field).collect() }
        }
    }
}
