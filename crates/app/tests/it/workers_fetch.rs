//! What a worker fetches: https addresses with the configured authority, submodules and large files only where the task asks
//! and the worker's settings allow it. A real git server over TLS, with a certificate of the test's own.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::Answer;

use crate::workers::{Farm, git, make_repository, shell};

/// git's own server for http, and the two requests that git-lfs makes for a download.
const SERVER: &str = r#"
import http.server, json, os, ssl, subprocess
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass
    def answer(self, status, headers, body):
        self.send_response(status)
        headers = [it for it in headers if it[0].lower() != 'content-length'] + [('Content-Length', str(len(body)))]
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
    def serve(self):
        size = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(size)
        path, _, query = self.path.partition('?')
        if path.endswith('/info/lfs/objects/batch'):
            objects = [dict(it, actions={'download': {'href': f'https://localhost:{port}/large/' + it['oid']}})
                for it in json.loads(body)['objects']]
            head = [('Content-Type', 'application/vnd.git-lfs+json')]
            return self.answer(200, head, json.dumps({'transfer': 'basic', 'objects': objects}).encode())
        if path.startswith('/large/'):
            return self.answer(200, [], open('large/' + os.path.basename(path), 'rb').read())
        variables = dict(os.environ, GIT_PROJECT_ROOT=os.getcwd(), GIT_HTTP_EXPORT_ALL='1', PATH_INFO=path,
            QUERY_STRING=query, REQUEST_METHOD=self.command, REMOTE_USER='worker', CONTENT_LENGTH=str(size),
            CONTENT_TYPE=self.headers.get('Content-Type', ''), GIT_PROTOCOL=self.headers.get('Git-Protocol', ''),
            HTTP_CONTENT_ENCODING=self.headers.get('Content-Encoding', ''))
        said = subprocess.run(['git', 'http-backend'], input=body, env=variables, stdout=subprocess.PIPE).stdout
        head, _, rest = said.partition(b'\r\n\r\n')
        headers = [line.split(': ', 1) for line in head.decode().split('\r\n')]
        status = next((int(value.split()[0]) for name, value in headers if name == 'Status'), 200)
        self.answer(status, [it for it in headers if it[0] != 'Status'], rest)
    do_GET = do_POST = serve
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('server.crt', 'server.key')
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
port = server.server_address[1]
print(port, flush=True)
server.serve_forever()
"#;

/// Repositories below `acme`, served over https.
struct GitServer {
    folder: PathBuf,
    address: String,
    process: Child,
}

impl GitServer {
    /// `None` where there is no Python or openssl.
    fn start(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(folder.join("acme")).expect("a folder");
        std::fs::create_dir_all(folder.join("large")).expect("a folder");
        for line in testkit::postgres::CERTIFICATES {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", line]).current_dir(&folder).stderr(Stdio::null());
            if !command.status().is_ok_and(|status| status.success()) {
                testkit::skip("openssl cannot make certificates here");
                return None;
            }
        }
        let mut command = Command::new("python3");
        command.args(["-c", SERVER]).current_dir(&folder).stdin(Stdio::null());
        command.env("HOME", &folder).env("GIT_CONFIG_NOSYSTEM", "1");
        let Ok(mut process) = command.stdout(Stdio::piped()).spawn() else {
            testkit::skip("python3 is not installed");
            return None;
        };
        let mut port = String::new();
        let stdout = process.stdout.take().expect("a pipe");
        std::io::BufReader::new(stdout).read_line(&mut port).expect("a port");
        Some(Self { folder, address: format!("https://localhost:{}/acme", port.trim()), process })
    }

    fn authority(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// Serves what a folder has as `acme/NAME.git`.
    fn publish(&self, from: &Path, name: &str) -> PathBuf {
        let place = self.folder.join(format!("acme/{name}.git"));
        let text = place.to_str().expect("text");
        git(from, &["clone", "--quiet", "--bare", ".", text]);
        place
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn commit(folder: &Path, message: &str) {
    git(folder, &["add", "."]);
    git(folder, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", message]);
}

/// A certificate counts only where `network.caCertFile` names its authority; the branch is pushed by it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_https_address_is_cloned_and_pushed_with_the_configured_authority() {
    let Some(mut farm) = Farm::start("https").await else { return };
    let Some(server) = GitServer::start(farm.home.path().join("server")) else { return };
    let place = server.publish(&farm.repository(), "shop");
    let address = format!("{}/shop.git", server.address);
    farm.config["worker"]["repositories"] = json!([server.address]);
    farm.config["worker"]["push"] = json!([address]);
    farm.fake.respond_with(crate::workers::work_once);
    let submit = ["submit", "Write", "--repo", address.as_str(), "--ref", "main"];

    let id = farm.ok(&submit).await.trim().to_owned();
    farm.drain().await;
    let task = farm.show(&id).await;
    assert_eq!((&task["state"], &task["outcome"]["outcome"]), (&json!("failed"), &json!("checkout")));
    let said = task["outcome"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("certificate"), "{task:#}");

    farm.config["network"] = json!({"caCertFile": server.authority()});
    let id = farm.ok(&submit).await.trim().to_owned();
    farm.drain().await;
    let task = farm.show(&id).await;
    assert_eq!((&task["state"], &task["outcome"]["pushed"]), (&json!("done"), &json!(address)), "{task:#}");
    assert_eq!(git(&place, &["show", &format!("dragoman/{id}:work.txt")]), "line");
}

const LARGE: &str = "the bytes of a large file";

/// A pointer of git LFS to [`LARGE`], and its hash.
fn pointer() -> (String, String) {
    use sha2::Digest;
    let hash: String = sha2::Sha256::digest(LARGE).iter().map(|byte| format!("{byte:02x}")).collect();
    let text =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{hash}\nsize {}\n", LARGE.len());
    (text, hash)
}

/// Tells what is there: the library of the submodule, and the beginning of the large file.
const LOOK: &str = "cat dep/lib.txt > seen.txt 2>&1; head -c 20 big.bin > big.txt; printf 'wri''tten'";

fn look_once(request: &testkit::Request) -> Answer {
    let is_done = request.body.to_string().contains("written");
    if is_done { Answer::text("It is done.") } else { shell(LOOK) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submodules_and_large_files_come_only_where_asked_and_allowed() {
    let Some(mut farm) = Farm::start("parts").await else { return };
    let Some(server) = GitServer::start(farm.home.path().join("server")) else { return };
    let library = farm.home.path().join("library");
    make_repository(&library);
    std::fs::write(library.join("lib.txt"), "library\n").expect("a file");
    commit(&library, "library");
    server.publish(&library, "lib");
    // The repository has a submodule at a relative address, and a large file.
    let (text, hash) = pointer();
    let shop = farm.repository();
    let link = git(&library, &["rev-parse", "HEAD"]);
    std::fs::write(shop.join(".gitmodules"), "[submodule \"x\"]\n\tpath = dep\n\turl = ../lib.git\n")
        .expect("a file");
    std::fs::write(shop.join("big.bin"), &text).expect("a file");
    std::fs::create_dir(shop.join("dep")).expect("a folder");
    git(&shop, &["update-index", "--add", "--cacheinfo", &format!("160000,{link},dep")]);
    commit(&shop, "parts");
    std::fs::write(server.folder.join("large").join(&hash), LARGE).expect("a file");
    server.publish(&shop, "shop");
    let address = format!("{}/shop.git", server.address);
    farm.config["network"] = json!({"caCertFile": server.authority()});
    farm.config["worker"]["repositories"] = json!([server.address, farm.home.path().join("repositories")]);
    farm.fake.respond_with(look_once);
    let has_lfs = Command::new("git-lfs").arg("version").output().is_ok_and(|it| it.status.success());
    if !has_lfs {
        testkit::skip("large files of an address, because git-lfs is not installed");
    }
    let run = async |farm: &Farm, repo: &str, flags: &[&str]| -> Value {
        let arguments = [&["submit", "Look", "--repo", repo, "--ref", "main"], flags].concat();
        let id = farm.ok(&arguments).await.trim().to_owned();
        farm.drain().await;
        farm.show(&id).await
    };
    let patch = async |farm: &Farm, task: &Value| -> String {
        farm.ok(&["tasks", "show", task["id"].as_str().unwrap_or_default(), "--patch"]).await
    };

    let task = run(&farm, &address, &[]).await;
    assert_eq!(task["state"], "done", "{task:#}");
    let changes = patch(&farm, &task).await;
    assert!(changes.contains("+version https://git-") && !changes.contains("+library"), "{changes}");

    for (flag, setting) in [("--submodules", "worker.submodules"), ("--lfs", "worker.lfs")] {
        let task = run(&farm, &address, &[flag]).await;
        let said = task["outcome"]["message"].as_str().unwrap_or_default();
        assert!(task["state"] == "failed" && said.contains(setting), "{task:#}");
    }
    farm.config["worker"]["submodules"] = json!(true);
    farm.config["worker"]["lfs"] = json!(true);
    let flags: &[&str] = if has_lfs { &["--submodules", "--lfs"] } else { &["--submodules"] };
    let task = run(&farm, &address, flags).await;
    let changes = patch(&farm, &task).await;
    assert!(changes.contains("+library"), "{changes}");
    assert!(!has_lfs || changes.contains(&format!("+{}", &LARGE[..20])), "{changes}");
    // The branch has neither the files of the submodule nor the bytes of the large file.
    assert_eq!(changes.matches("diff --git").count(), 2, "{changes}");

    // A local repository has its large files itself.
    let objects = shop.join(".git/lfs/objects").join(&hash[..2]).join(&hash[2..4]);
    std::fs::create_dir_all(&objects).expect("a folder");
    std::fs::write(objects.join(&hash), LARGE).expect("an object");
    let task = run(&farm, shop.to_str().expect("text"), &["--lfs"]).await;
    let changes = patch(&farm, &task).await;
    assert!(changes.contains(&format!("+{}", &LARGE[..20])), "{changes}");
    assert_eq!(changes.matches("diff --git").count(), 2, "{changes}");

    // A submodule from an address that the worker's settings do not name.
    farm.config["worker"]["repositories"] = json!([address]);
    let task = run(&farm, &address, &["--submodules"]).await;
    let said = task["outcome"]["message"].as_str().unwrap_or_default();
    assert!(task["state"] == "failed" && said.contains("do not name the submodule dep"), "{task:#}");
}

/// A worker gives a task so much time; what has ended is deleted by name or after the days that the settings say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_end_at_their_deadline_and_are_deleted() {
    let Some(mut farm) = Farm::start("deadline").await else { return };
    farm.fake.respond_with(|_| Answer::new().say("I think").silence());
    let late = farm.submit("Think", &["--timeout", "1000"]).await;
    let mut worker = farm.worker(&["--drain", "--timeout", "3"]);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(100), worker.wait()).await;
    assert!(ended.expect("the task ends").expect("a status").success());
    let task = farm.show(&late).await;
    let said = task["outcome"]["message"].as_str().unwrap_or_default();
    assert_eq!(
        (&task["state"], &task["outcome"]["outcome"]),
        (&json!("failed"), &json!("timeout")),
        "{said}"
    );

    let waiting = farm.submit("Wait", &[]).await;
    let (code, _, err) =
        crate::client::run_command(&farm.home, &farm.config, &["tasks", "delete", &waiting]).await;
    assert!(code == Some(1) && err.contains("has not ended"), "{err}");
    farm.ok(&["tasks", "cancel", &waiting]).await;
    let said = farm.ok(&["tasks", "delete", &waiting, "--json"]).await;
    assert!(said.contains("deleted") && said.contains(&waiting), "{said}");
    let (code, _, err) =
        crate::client::run_command(&farm.home, &farm.config, &["tasks", "show", &waiting]).await;
    assert!(code == Some(1) && err.contains("There is no task"), "{err}");

    // Days later.
    farm.config["worker"]["retentionDays"] = json!(2);
    farm.drain().await;
    assert_eq!(farm.show(&late).await["state"], "failed", "a task was deleted too early");
    assert_eq!(farm.server.query("deadline", "SELECT count(*) FROM dragoman.sessions"), "1");
    farm.server.query("deadline", "UPDATE dragoman.tasks SET ended = ended - interval '3 days'");
    farm.drain().await;
    assert_eq!(farm.server.query("deadline", "SELECT count(*) FROM dragoman.tasks"), "0");
    assert_eq!(farm.server.query("deadline", "SELECT count(*) FROM dragoman.sessions"), "0");
}
