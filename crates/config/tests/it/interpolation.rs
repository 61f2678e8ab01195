//! `${…}` in strings: what each reference yields, when it is looked up, and what is said when it fails.

use serde_json::json;

use super::{OUR_GLOBAL, OUR_PROJECT, World, notices};

/// The URL of the provider `x` when it is written like this.
async fn url(world: &World, written: &str) -> Result<String, String> {
    world.put(OUR_GLOBAL, json!({"providers": {"x": {"url": written}}}));
    let settings = world.settings();
    match &settings.providers["x"].url {
        None => Ok("(none)".into()),
        Some(url) => url.get().await.map(str::to_owned).map_err(|failure| failure.to_string()),
    }
}

#[tokio::test]
async fn what_each_reference_yields() {
    let world = World::new()
        .var("NAME", "value")
        .var("EMPTY", "")
        .var("TRICK", "${env:NAME}${cmd:echo evil}")
        .write("home/secret.txt", "from file\n")
        .write("home/.config/dragoman/beside.txt", "beside")
        .write(
            "home/.netrc",
            "machine api.host.com login me password pass\nmachine h port 1 password ported",
        );
    let home = world.path("home").display().to_string();
    let absolute = format!("${{file:{}}}", world.path("home/secret.txt").display());
    let rows = [
        ("plain", "plain"),
        ("${env:NAME}", "value"),
        ("a${env:NAME}b${env:NAME}c", "avaluebvaluec"),
        ("${env:UNSET:fall:back}", "fall:back"),
        ("${env:UNSET}x", "x"),
        ("${env:UNSET}", ""),
        ("${env:EMPTY:default}x", "x"),
        ("${env:TRICK}", "${env:NAME}${cmd:echo evil}"),
        (&absolute, "from file"),
        ("${file:~/secret.txt}", "from file"),
        ("${file:beside.txt}", "beside"),
        ("${file:../../secret.txt}", "from file"),
        ("${netrc:api.host.com}", "pass"),
        ("${netrc:me@api.host.com}", "pass"),
        ("${netrc:h:1}", "ported"),
        ("${cmd:echo out; echo err >&2}", "out"),
        ("<${cmd:printf 'a b\\n\\n'}>", "<a b>"),
        ("${cmd:echo x y | awk '{print $2}'}", "y"),
        ("${cmd:pwd -P}", &home),
        ("${HOME} $NAME ${unknown:x} ${", "${HOME} $NAME ${unknown:x} ${"),
    ];
    for (written, want) in rows {
        assert_eq!(url(&world, written).await.as_deref(), Ok(want), "{written}");
    }
}

#[tokio::test]
async fn what_fails_is_said_without_secrets() {
    let world = World::new();
    let rows = [
        ("${file:gone.txt}", "there is no file"),
        ("${netrc:api.host.com}", "there is no entry “api.host.com” in"),
        ("${cmd:echo hidden-word >&2; exit 3}", "its command failed with exit code 3"),
        ("${cmd:kill -9 $$ # hidden-word}", "its command was ended by signal 9"),
        ("${cmd:head -c 2000000 /dev/zero}", "its command writes more than 1 MiB"),
        ("${classpath:prompts/x.md}", "files of ECA's own program"),
    ];
    for (written, want) in rows {
        world.put(OUR_GLOBAL, json!({"providers": {"x": {"url": written, "key": written}}}));
        let resolved = world.resolve();
        let provider = &resolved.settings.providers["x"];
        let later = provider.key.as_ref().unwrap().get().await.unwrap_err().to_string();
        for (key, error) in [("url", notices(&world, &resolved)), ("key", later)] {
            let begin = format!("`providers.x.{key}` could not be looked up: ");
            assert!(error.contains(&begin) && error.contains(want), "{written}: {error}");
            assert!(!error.contains("hidden-word"), "{written}: {error}");
        }
        let problem = provider.url_problem.as_ref().unwrap().to_string();
        assert!(problem.contains(want) && provider.url.as_ref().unwrap().known().is_none(), "{problem}");
    }
}

/// Otherwise the vendor's own url would be asked in its place.
#[test]
fn a_url_that_is_written_and_yields_nothing_is_a_problem() {
    let world = World::new().write("home/empty.txt", "\n");
    let rows = [
        (json!("${env:NOT_SET}"), true),
        (json!("${file:~/empty.txt}"), true),
        (json!("${cmd:true}"), true),
        (json!(" "), true),
        (json!(["http://x"]), true),
        (json!({"host": "x"}), true),
        (json!("${env:NOT_SET:http://x}"), false),
        (json!(null), false),
    ];
    for (written, broken) in rows {
        world.put(OUR_GLOBAL, json!({"providers": {"openai": {"url": written, "key": "k"}}}));
        let resolved = world.resolve();
        let problem = resolved.settings.providers["openai"].url_problem.as_ref().map(ToString::to_string);
        let said = notices(&world, &resolved);
        assert_eq!(problem.is_some(), broken, "{written}: {problem:?}");
        assert_eq!(said.contains("`providers.openai.url` cannot be used"), broken, "{written}: {said}");
        assert!(!broken || problem.unwrap().contains("`providers.openai.url`"), "{written}");
    }
}

#[tokio::test]
async fn commands_run_at_the_first_use_and_once() {
    let world = World::new();
    let count = world.path("home/count");
    let command = format!("${{cmd:echo x >> {}; echo the-secret}}", count.display());
    world.put(OUR_GLOBAL, json!({"providers": {"x": {"key": command}}}));
    let resolved = world.resolve();
    let key = resolved.settings.providers["x"].key.as_ref().unwrap();
    assert!(key.known().is_none() && !count.exists(), "reading settings ran a command");
    assert_eq!(resolved.redactor.redact("say the-secret"), "say the-secret");
    let (one, two) = tokio::join!(key.get(), key.get());
    assert_eq!((one.unwrap().expose(), two.unwrap().expose()), ("the-secret", "the-secret"));
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
    assert_eq!(resolved.redactor.redact("say the-secret"), "say ********");
}

#[tokio::test]
async fn a_failure_is_tried_again() {
    let world = World::new().write(OUR_GLOBAL, json!({"providers": {"x": {"key": "${file:late.txt}"}}}));
    let settings = world.settings();
    let key = settings.providers["x"].key.as_ref().unwrap();
    assert!(key.get().await.is_err());
    world.put("home/.config/dragoman/late.txt", "here-now\n");
    assert_eq!(key.get().await.unwrap().expose(), "here-now");
}

#[tokio::test]
async fn settings_that_are_needed_at_once_are_looked_up_at_once() {
    let world = World::new().write("home/model.txt", "a/from-file\n").write(
        OUR_GLOBAL,
        json!({
            "defaultModel": "${file:~/model.txt}",
            "welcomeMessage": "${cmd:echo hello}\n",
            "failover": ["${cmd:echo b/c}"],
            "chat": {"titleModel": "${cmd:exit 1}"},
            "providers": {"x": {"url": "${cmd:echo http://x}/v1"}, "y": {"url": "${file:~/none.txt}"}},
        }),
    );
    let resolved = world.resolve();
    assert_eq!(resolved.settings.default_model.as_deref(), Some("a/from-file"));
    assert_eq!(
        (&*resolved.settings.chat.welcome_message, &resolved.settings.failover[..]),
        ("hello\n", &["b/c".to_owned()][..])
    );
    let urls = ["x", "y"].map(|name| resolved.settings.providers[name].url.as_ref()?.known());
    assert_eq!(urls, [Some("http://x/v1"), None]);
    assert!(notices(&world, &resolved).contains("`providers.y.url` cannot be used"));
    assert_eq!(resolved.settings.chat.title_model, None);
    assert!(notices(&world, &resolved).contains("`chat.titleModel` is left out."));
}

#[tokio::test]
async fn another_netrc_file_and_key_rc() {
    let world = World::new()
        .write("home/creds", "machine api.x.com password from-creds")
        .write(OUR_GLOBAL, json!({"netrcFile": "~/creds", "providers": {"x": {"keyRc": "api.x.com"}}}));
    assert_eq!(
        world.settings().providers["x"].key.as_ref().unwrap().get().await.unwrap().expose(),
        "from-creds"
    );
}

#[tokio::test]
async fn a_trusted_project_looks_up_from_its_own_place() {
    let world = World::new().var("DRAGOMAN_TRUST", 1).write("project/key.txt", "project-key").write(
        OUR_PROJECT,
        json!({"providers": {"x": {"key": "${file:../key.txt}", "url": "${cmd:pwd -P}"}}}),
    );
    let settings = world.settings();
    let provider = &settings.providers["x"];
    assert_eq!(provider.key.as_ref().unwrap().get().await.unwrap().expose(), "project-key");
    let place = world.path("project").display().to_string();
    assert_eq!(provider.url.as_ref().unwrap().get().await.unwrap(), place);
}
