//! Popular servers from the registries, as a user would start them: in `make test-full`. A server that cannot be installed here
//! is skipped by name.

use super::*;
use process::Spawn;

/// The registry, the package, its program, the arguments, and a tool that it must offer.
const SERVERS: &[(&str, &str, &str, &[&str], &str)] = &[
    ("npm", "@modelcontextprotocol/server-memory", "mcp-server-memory", &[], "read_graph"),
    ("npm", "@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", &["."], "list_directory"),
    (
        "npm",
        "@modelcontextprotocol/server-sequential-thinking",
        "mcp-server-sequential-thinking",
        &[],
        "sequentialthinking",
    ),
    ("npm", "@upstash/context7-mcp", "context7-mcp", &[], "resolve-library-id"),
    ("npm", "@notionhq/notion-mcp-server", "notion-mcp-server", &[], "API-get-user"),
    ("pip", "mcp-server-time", "mcp-server-time", &[], "get_current_time"),
    ("pip", "mcp-server-git", "mcp-server-git", &[], "git_status"),
    ("pip", "mcp-server-fetch", "mcp-server-fetch", &[], "fetch"),
];

const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);

async fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let run =
        Spawn::new(program).args(arguments).deadline(INSTALL_TIMEOUT).run(&CancellationToken::new()).await;
    run.is_ok_and(|it| it.end == process::End::Exited(0))
}

/// The folder of the installed programs; `None`: the package cannot be installed here.
async fn installed(registry: &str, package: &str, folder: &Path) -> Option<PathBuf> {
    let place = folder.display().to_string();
    if registry == "npm" {
        let arguments =
            ["install", "--prefix", &place, "--no-audit", "--no-fund", "--ignore-scripts", package];
        return succeeds("npm", &arguments).await.then(|| folder.join("node_modules/.bin"));
    }
    succeeds("python3", &["-m", "venv", &place]).await.then_some(())?;
    let programs = folder.join("bin");
    let pip = programs.join("pip").display().to_string();
    succeeds(&pip, &["install", "--quiet", package]).await.then_some(programs)
}

#[tokio::test]
async fn popular_servers_run() {
    if !testkit::is_full_run() {
        return;
    }
    for (registry, package, program, arguments, tool) in SERVERS {
        let bench = Bench::new();
        let Some(programs) = installed(registry, package, &bench.folder.path().join("package")).await else {
            testkit::skip(format!("{package} cannot be installed here"));
            continue;
        };
        let command = programs.join(program).display().to_string();
        let args = arguments.iter().map(|it| it.to_string()).collect();
        let transport = ServerTransport::Stdio { command, args, env: Vec::new() };
        let config = ServerConfig::fixed(&ServerSpec { name: "popular".into(), transport });
        let servers = Supervisor::new(vec![config], bench.options());
        servers.start();
        let running = reaches(&servers, "popular", ServerStatus::Running).await;
        let names: Vec<&str> = running.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert!(names.contains(tool), "{package}: {names:?}");
        servers.shutdown().await;
    }
}
