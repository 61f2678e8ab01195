//! What `config show` prints: every value and its origin, no secret anywhere.

use serde_json::json;

use super::{OUR_GLOBAL, World};

fn world() -> World {
    World::new().var("OPENAI_API_KEY", "hidden-openai").write(
        OUR_GLOBAL,
        json!({
            "defaultModel": "x/shown-model",
            "providers": {"x": {
                "key": "hidden-literal",
                "url": "https://user:hidden-password@shown-host/v1?token=hidden-token",
                "extraHeaders": {"Authorization": "Bearer hidden-bearer", "X-Team": "hidden-team"},
                "models": {"m.1": {"extraHeaders": {"A": "hidden-model-header"}}},
            }, "y": {"key": "prefix-hidden-${env:SHOWN_NAME:hidden-default}${cmd:shown-command {x}}"}},
            "mcpServers": {"s": {
                "command": "shown-program",
                "args": ["--api-key", "hidden-argument", "--token=hidden-token", "shown-argument"],
                "env": {"TOKEN": "hidden-variable"},
            }, "h": {"url": "http://h", "headers": {"A": "hidden-header"}, "clientSecret": "hidden-client"}},
            "network": {"clientKeyPassphrase": "hidden-phrase"},
            "otlp": {"otel.exporter.otlp.headers": "x=hidden-otlp"},
            "welcomeMessage": "shown, but never hidden-literal",
            "toolCall": {"approval": {"deny": {"shell_command": {"argsMatchers": {"command": ["shown-regex"]}}}}},
        }),
    )
}

#[test]
fn no_secret_is_shown_and_everything_else_is() {
    let resolved = world().resolve();
    let (text, json) = (resolved.show_text(), resolved.show_json().to_string());
    for shown in [&text, &json] {
        assert!(!shown.contains("hidden"), "{shown}");
        for word in [
            "shown-model",
            "shown-host/v1",
            "shown-program",
            "shown-argument",
            "shown-regex",
            "${env:SHOWN_NAME:********}${cmd:shown-command {x}}",
            "${env:OPENAI_API_KEY}",
            "$OPENAI_API_KEY",
            "shown, but never ********",
            "--token=********",
            ".config/dragoman/config.json",
        ] {
            assert!(shown.contains(word), "{word} is missing in {shown}");
        }
    }
    assert!(text.contains("maxSteps = 200    (default)"), "{text}");
    assert!(text.contains("toolCall.approval.byDefault = \"ask\""), "{text}");
    let json = resolved.show_json();
    assert_eq!(json["settings"]["providers"]["x"]["key"], "********");
    assert_eq!(json["origins"]["maxSteps"], "default");
    assert_eq!(json["approval"]["toolCall.approval"]["deny"][0]["target"], "shell_command");
}

#[tokio::test]
async fn debug_output_holds_no_secret() {
    let resolved = world().resolve();
    for (_, provider) in &resolved.settings.providers {
        if let Some(key) = provider.key.as_ref().filter(|key| key.known().is_some()) {
            key.get().await.unwrap();
        }
    }
    let shown = format!("{:?}", resolved.settings.providers["x"].key);
    let headers = format!(
        "{:?} {:?}",
        resolved.settings.providers["x"].extra_headers, resolved.settings.mcp_servers["h"]
    );
    assert!(!shown.contains("hidden") && !headers.contains("hidden"), "{shown} {headers}");
}
