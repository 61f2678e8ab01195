//! Credentials for Bedrock through the real program: each source is a real file or a server of this machine.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::client::Home;
use crate::run::{Ran, finish};

/// A server that answers by the path and remembers the heads of requests.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !is_whole(&request) {
                    match socket.read(&mut buffer).await {
                        Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
                        Ok(0) | Err(_) => break,
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let line = request.lines().next().unwrap_or_default().to_owned();
                kept.lock().expect("requests").push(request);
                let (status, body) = match answer(&line) {
                    Some(body) => ("200 OK", body),
                    None => ("404 Not Found", String::new()),
                };
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("requests").clone()
    }
}

/// Head and body are there.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let lengths = head
        .lines()
        .filter_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    body.len() >= lengths.max().unwrap_or(0)
}

struct Bench {
    home: Home,
    fake: FakeModel,
}

impl Bench {
    async fn new() -> Self {
        Self { home: Home::new(), fake: FakeModel::start().await }
    }

    async fn run(&self, variables: &[(&str, &str)]) -> Ran {
        self.fake.answer(Answer::text("signed"));
        let config = json!({
            "defaultModel": "bedrock/m1",
            "providers": {"bedrock": {"url": self.fake.url(), "models": {"m1": {}}}},
        });
        let mut command: Command = self.home.command(&["run", "--retries", "0", "hello"]).into();
        command.env("DRAGOMAN_CONFIG", config.to_string()).env("AWS_EC2_METADATA_DISABLED", "true");
        command.envs(variables.iter().copied()).stdin(std::process::Stdio::null()).kill_on_drop(true);
        finish(command).await
    }

    /// The key that signed the last request, and its token.
    async fn signed(&self, variables: &[(&str, &str)]) -> (String, Option<String>) {
        let ran = self.run(variables).await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        let request = self.fake.last_request();
        let authorization = request.header("authorization").expect("a signature");
        let key = authorization.split("Credential=").nth(1).and_then(|rest| rest.split('/').next());
        (key.expect("a key").to_owned(), request.header("x-amz-security-token").map(str::to_owned))
    }
}

fn keys(id: &str) -> Value {
    let (secret, expires) = (format!("secret-of-{id}"), "2099-01-01T00:00:00Z");
    json!({"AccessKeyId": id, "SecretAccessKey": secret, "Token": format!("token-of-{id}"), "Expiration": expires})
}

#[tokio::test]
async fn bedrock_uses_profiles_with_keys_and_programs() {
    let bench = Bench::new().await;
    let credentials = "[default]\naws_access_key_id = AKDEFAULT\naws_secret_access_key = s1\n\
                       [work]\naws_access_key_id=AKWORK\naws_secret_access_key=s2\naws_session_token=t2\n";
    bench.home.write(".aws/credentials", credentials);
    let printed = keys("AKPROGRAM").to_string().replace("Token", "SessionToken");
    let program = bench.home.write("keys.json", &printed);
    let config = format!(
        "[profile asked]\ncredential_process = cat '{}'\n[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n",
        program.display()
    );
    bench.home.write(".aws/config", &config);
    assert_eq!(bench.signed(&[]).await, ("AKDEFAULT".into(), None));
    assert_eq!(bench.signed(&[("AWS_PROFILE", "work")]).await, ("AKWORK".into(), Some("t2".into())));
    assert_eq!(bench.signed(&[("AWS_PROFILE", "asked")]).await.0, "AKPROGRAM");
    let own = [("AWS_PROFILE", "work"), ("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "s3")];
    assert_eq!(bench.signed(&own).await.0, "AKENV");
    for (profile, expected) in
        [("none", "no AWS profile `none`"), ("role", "export-credentials --profile role")]
    {
        let ran = bench.run(&[("AWS_PROFILE", profile)]).await;
        assert!(ran.code != Some(0) && ran.err.contains(expected), "{}", ran.err);
    }
}

#[tokio::test]
async fn bedrock_uses_the_sign_in_of_aws() {
    let bench = Bench::new().await;
    let server = Server::start(|line| {
        let fits = line.contains("/federation/credentials?account_id=42&role_name=dev ");
        fits.then(|| {
            let keys = json!({"accessKeyId": "AKSSO", "secretAccessKey": "s", "sessionToken": "t", "expiration": 4_070_908_800_000_u64});
            json!({"roleCredentials": keys}).to_string()
        })
    })
    .await;
    let config = "[profile corp]\nsso_session = corp\nsso_account_id = 42\nsso_role_name = dev\nregion = eu-west-1\n\
                  [sso-session corp]\nsso_start_url = https://corp.example.com/start\nsso_region = eu-west-1\n";
    bench.home.write(".aws/config", config);
    let variables = [("AWS_PROFILE", "corp"), ("AWS_ENDPOINT_URL_SSO", server.url.as_str())];
    let ran = bench.run(&variables).await;
    assert!(ran.code != Some(0) && ran.err.contains("aws sso login --profile corp"), "{}", ran.err);
    let token = |expires: &str| json!({"startUrl": "https://corp.example.com/start", "accessToken": "sso-token-0123456789", "expiresAt": expires});
    bench.home.write(".aws/sso/cache/a.json", &token("2020-01-01T00:00:00Z").to_string());
    assert_ne!(bench.run(&variables).await.code, Some(0), "the token has ended");
    bench.home.write(".aws/sso/cache/b.json", &token("2099-01-01T00:00:00Z").to_string());
    assert_eq!(bench.signed(&variables).await, ("AKSSO".into(), Some("t".into())));
    assert!(server.requests()[0].contains("x-amz-sso_bearer_token: sso-token-0123456789"));
}

#[tokio::test]
async fn bedrock_uses_the_credentials_of_containers_and_machines() {
    let bench = Bench::new().await;
    let server = Server::start(|line| match line.split(' ').take(2).collect::<Vec<_>>().join(" ").as_str() {
        "GET /container" => Some(keys("AKCONTAINER").to_string()),
        "PUT /latest/api/token" => Some("metadata-token".to_owned()),
        "GET /latest/meta-data/iam/security-credentials/" => Some("my-role".to_owned()),
        "GET /latest/meta-data/iam/security-credentials/my-role" => Some(keys("AKMACHINE").to_string()),
        _ => None,
    })
    .await;
    let url = format!("{}/container", server.url);
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-container"),
    ];
    assert_eq!(bench.signed(&variables).await, ("AKCONTAINER".into(), Some("token-of-AKCONTAINER".into())));
    assert!(server.requests()[0].contains("authorization: of-container"));
    let elsewhere = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/container")];
    let ran = bench.run(&elsewhere).await;
    assert!(ran.code != Some(0) && ran.err.contains("only https"), "{}", ran.err);
    let machine =
        [("AWS_EC2_METADATA_DISABLED", "false"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url.as_str())];
    assert_eq!(bench.signed(&machine).await.0, "AKMACHINE");
    let requests = server.requests();
    assert!(requests.last().expect("requests").contains("x-aws-ec2-metadata-token: metadata-token"));
}
