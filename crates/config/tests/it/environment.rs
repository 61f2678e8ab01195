//! Variables and directories.

use std::path::Path;

use config::Environment;
use serde_json::json;

use super::{OUR_GLOBAL, World};

#[test]
fn directories_follow_the_variables() {
    let plain = Environment::new("/home/me", Vec::<(String, String)>::new());
    let moved = Environment::new(
        "/home/me",
        [
            ("XDG_CONFIG_HOME", "/x/config"),
            ("XDG_DATA_HOME", "/x/data"),
            ("XDG_CACHE_HOME", "relative/is/ignored"),
            ("XDG_STATE_HOME", "/x/state"),
            ("DRAGOMAN_MODELS", "/x/models"),
        ],
    );
    let ours = Environment::new("/home/me", [("DRAGOMAN_DATA", "/y")]);
    let rows = [
        (plain.config_dir(), "/home/me/.config/dragoman"),
        (plain.eca_config_dir(), "/home/me/.config/eca"),
        (plain.data_dir(), "/home/me/.local/share/dragoman"),
        (plain.cache_dir(), "/home/me/.cache/dragoman"),
        (plain.state_dir(), "/home/me/.local/state/dragoman"),
        (plain.models_dir(), "/home/me/.local/share/dragoman/models"),
        (moved.config_dir(), "/x/config/dragoman"),
        (moved.data_dir(), "/x/data/dragoman"),
        (moved.cache_dir(), "/home/me/.cache/dragoman"),
        (moved.state_dir(), "/x/state/dragoman"),
        (moved.models_dir(), "/x/models"),
        (ours.data_dir(), "/y"),
        (ours.models_dir(), "/y/models"),
        (plain.expand_home("~/a"), "/home/me/a"),
        (plain.expand_home("~"), "/home/me"),
        (plain.expand_home("~other/a"), "~other/a"),
    ];
    for (got, want) in rows {
        assert_eq!(got, Path::new(want));
    }
}

#[test]
fn the_process_has_an_environment() {
    let environment = Environment::from_process();
    assert!(environment.var("PATH").is_some() && environment.home().is_absolute());
    assert!(!format!("{environment:?}").contains("PATH"));
}

#[test]
fn keys_come_from_variables_where_no_file_has_one() {
    let rows = [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GEMINI_API_KEY", "google"),
        ("GOOGLE_API_KEY", "google"),
        ("OPENROUTER_API_KEY", "openrouter"),
        ("DEEPSEEK_API_KEY", "deepseek"),
        ("ZHIPU_API_KEY", "z-ai"),
        ("DASHSCOPE_API_KEY", "qwen"),
        ("AWS_BEARER_TOKEN_BEDROCK", "bedrock"),
        ("MY_COMPANY_API_KEY", "my-company"),
    ];
    for (variable, provider) in rows {
        let world = World::new()
            .var(variable, "sk-from-variable ${cmd:echo evil}")
            .write(OUR_GLOBAL, json!({"providers": {"my-company": {"api": "openai-chat"}}}));
        let resolved = world.resolve();
        let key = resolved.settings.providers[provider].key.as_ref().unwrap();
        assert_eq!(key.known().unwrap().expose(), "sk-from-variable ${cmd:echo evil}", "{variable}");
        assert_eq!(
            resolved.origin(&format!("providers.{provider}.key")).unwrap().to_string(),
            format!("${variable}")
        );
        assert_eq!(resolved.secret_variables, [variable]);
        assert!(!resolved.redactor.redact("x sk-from-variable ${cmd:echo evil} y").contains("sk-from"));

        world.put(OUR_GLOBAL, json!({"providers": {provider: {"key": "sk-from-file"}}}));
        let resolved = world.resolve();
        assert_eq!(
            resolved.settings.providers[provider].key.as_ref().unwrap().known().unwrap().expose(),
            "sk-from-file"
        );
    }
}

#[test]
fn an_empty_variable_is_no_key() {
    let world =
        World::new().var("OPENAI_API_KEY", "").write(OUR_GLOBAL, json!({"providers": {"openai": {}}}));
    assert!(world.settings().providers["openai"].key.is_none());
}

#[test]
fn other_settings_from_variables() {
    let world = World::new()
        .var("SSL_CERT_FILE", "/ca.pem")
        .var("ECA_CLIENT_CERT", "/c.pem")
        .var("ECA_CLIENT_KEY", "/k.pem")
        .var("ECA_CLIENT_KEY_PASSPHRASE", "phrase")
        .var("HTTPS_PROXY", "http://upper")
        .var("https_proxy", "http://me:proxy-password@lower:8080")
        .var("NO_PROXY", "a,b")
        .var("MY_API_URL", "http://my")
        .var("AWS_REGION", "eu-west-1")
        .var("AWS_SECRET_ACCESS_KEY", "aws-secret")
        .write(OUR_GLOBAL, json!({"providers": {"my": {}}}));
    let resolved = world.resolve();
    let network = &resolved.settings.network;
    assert_eq!(network.ca_cert_file.as_deref(), Some(Path::new("/ca.pem")));
    assert_eq!(network.client_key.as_deref(), Some(Path::new("/k.pem")));
    assert_eq!(network.client_key_passphrase.as_ref().unwrap().known().unwrap().expose(), "phrase");
    assert_eq!(resolved.settings.providers["my"].url.as_ref().unwrap().known(), Some("http://my"));
    assert_eq!(resolved.settings.aws.region.as_deref(), Some("eu-west-1"));
    assert_eq!(resolved.redactor.redact("proxy-password aws-secret"), "******** ********");
}
