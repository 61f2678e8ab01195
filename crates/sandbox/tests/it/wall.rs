//! What the wall stops, what it lets through, and what each grant opens.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use process::End;
use process::sandbox::{Allowance, GitAccess, Grant, Support};
use tokio::io::AsyncBufReadExt;

use crate::kit::World;

#[tokio::test]
async fn only_the_workspace_and_temporary_folders_are_written() {
    let world = World::new();
    for line in [
        "echo x > $OUTSIDE/new",
        "echo x > $OUTSIDE/file",
        "rm $OUTSIDE/file",
        "echo x > $HOME/new",
        "echo x > /etc/new",
    ] {
        let (finished, text) = world.run(line).await;
        assert_ne!(finished.end, End::Exited(0), "{line}: {text}");
    }
    assert_eq!(fs::read_to_string(world.outside.join("file")).unwrap(), "outside");
    assert!(!world.outside.join("new").exists());
    let (finished, text) = world
        .run("echo x > new && mkdir -p a/b && mv new a/b && echo y > ${TMPDIR}/y && cat ${TMPDIR}/y")
        .await;
    assert_eq!((finished.end, text.as_str()), (End::Exited(0), "y\n"));
    assert!(world.workspace.join("a/b/new").exists());
}

#[tokio::test]
async fn the_temporary_folder_is_kept_from_one_command_to_the_next() {
    let world = World::new();
    world.run("echo kept > $TMPDIR/k").await;
    assert_eq!(world.run("cat $TMPDIR/k").await.1, "kept\n");
}

#[tokio::test]
async fn secrets_are_covered_and_other_files_are_read() {
    let world = World::new();
    let line = "cat $HOME/.ssh/id_ed25519 $HOME/.netrc $HOME/.config/dragoman/config.json /etc/shadow; cat $OUTSIDE/file";
    let (_, text) = world.run(line).await;
    assert!(!text.contains("CANARY") && !text.contains("root:"), "{text}");
    assert!(text.contains("outside"), "{text}");
}

#[tokio::test]
async fn a_link_to_a_secret_leads_nowhere() {
    let world = World::new();
    symlink(world.home.join(".ssh"), world.workspace.join("keys")).unwrap();
    symlink("/proc/self/root", world.workspace.join("root")).unwrap();
    let (_, text) =
        world.run("cat keys/id_ed25519; cat root$HOME/.netrc; ln $HOME/.netrc copy; cat copy").await;
    assert!(!text.contains("CANARY"), "{text}");
}

fn repository(world: &World) {
    for folder in [".git/hooks", ".git/objects", ".git/refs", ".git/modules/sub/hooks"] {
        fs::create_dir_all(world.workspace.join(folder)).unwrap();
    }
    for file in [".git/HEAD", ".git/modules/sub/HEAD"] {
        fs::write(world.workspace.join(file), "ref: refs/heads/main\n").unwrap();
    }
    for file in [".git/config", ".git/modules/sub/config"] {
        fs::write(world.workspace.join(file), "[core]\n\trepositoryformatversion = 0\n").unwrap();
    }
}

#[tokio::test]
async fn hooks_and_configuration_of_git_are_protected() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    repository(&world);
    for line in [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "rm -f .git/config; echo x > .git/config",
        "mv .git/hooks .git/h",
        "mv .git .g && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "rm -rf .git",
    ] {
        let (finished, text) = world.run(line).await;
        assert_ne!(finished.end, End::Exited(0), "{line}: {text}");
    }
    let git = world.workspace.join(".git");
    // The command writes a copy, and this is not taken over from it.
    for line in [
        "echo x > .git/modules/sub/hooks/post-checkout",
        "echo x > .git/modules/sub/config",
        "mv .git/modules .git/m",
        "rm -rf .git/HEAD .git/refs",
    ] {
        let (_, text) = world.run(line).await;
        assert!(text.contains("Dragoman:"), "{line}: {text}");
        assert!(fs::read_to_string(git.join("modules/sub/config")).unwrap().starts_with("[core]"), "{line}");
        assert_eq!(fs::read_dir(git.join("modules/sub/hooks")).unwrap().count(), 0, "{line}");
        assert!(git.join("HEAD").exists() && git.join("modules/sub/HEAD").exists(), "{line}");
    }
    assert_eq!(fs::read_dir(git.join("hooks")).unwrap().count(), 0);
    assert!(fs::read_to_string(git.join("config")).unwrap().starts_with("[core]"));
    assert_eq!(world.run("echo x > .git/COMMIT_EDITMSG").await.0.end, End::Exited(0));
    // The grant opens the configuration, never the hooks.
    assert_eq!(world.run_with("echo '# x' >> .git/config", &["git-config"]).await.0.end, End::Exited(0));
    assert_ne!(world.run_with("echo x > .git/hooks/a", &["git-config"]).await.0.end, End::Exited(0));
}

#[tokio::test]
async fn a_grant_opens_exactly_one_folder() {
    let world = World::new();
    let other = world.outside.join("other");
    fs::create_dir(&other).unwrap();
    let grant = format!("write:{}", other.display());
    let (finished, text) = world.run_with("echo x > $OUTSIDE/other/new", &[&grant]).await;
    assert_eq!(finished.end, End::Exited(0), "{text}");
    assert_ne!(world.run_with("echo x > $OUTSIDE/new", &[&grant]).await.0.end, End::Exited(0));
    for path in [world.home.join(".ssh"), world.home.join(".bashrc")] {
        let grant = format!("write:{}", path.display());
        let refused =
            world.spawn_with("true", &[&grant]).run(&tokio_util::sync::CancellationToken::new()).await;
        assert!(refused.unwrap_err().to_string().contains("is protected"));
    }
}

#[tokio::test]
async fn the_ssh_grant_shows_known_hosts_and_no_key() {
    let world = World::new();
    let (_, text) = world.run_with("cat $HOME/.ssh/known_hosts $HOME/.ssh/id_ed25519", &["ssh"]).await;
    assert!(text.contains("known host") && !text.contains("CANARY"), "{text}");
}

#[tokio::test]
async fn processes_outside_are_neither_seen_nor_signalled() {
    let world = World::new();
    let own = std::process::id();
    let (finished, text) =
        world.run(&format!("kill -0 {own} || kill -0 {}", std::os::unix::process::parent_id())).await;
    assert_ne!(finished.end, End::Exited(0), "{text}");
    let (finished, text) = world.run(&format!("cat /proc/{own}/environ | head -c 10 | grep -q .")).await;
    assert_ne!(finished.end, End::Exited(0), "{text}");
}

#[tokio::test]
async fn services_that_listen_outside_are_out_of_reach() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let _socket = UnixListener::bind(world.home.join("agent.sock")).unwrap();
    // In another process: a port of our own could not be granted.
    let serve = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n\
                 while True: s.accept()[0].sendall(b'hello\\n')";
    let mut server = process::Spawn::new("python3").arg("-c").arg(serve).start().await.unwrap();
    let mut lines = tokio::io::BufReader::new(server.take_stdout().unwrap()).lines();
    let port = lines.next_line().await.unwrap().expect("a port");
    let (_, text) = world.run("test -S $HOME/agent.sock && echo there").await;
    assert_eq!(text, "");
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let (_, text) = world.run(&connect).await;
    assert!(!text.contains("connected\n"), "{text}");
    // The grant for this port opens it.
    let read = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && head -n 1 <&3");
    assert_eq!(world.run_with(&read, &[&format!("port:{port}")]).await.1, "hello\n");
    server.stop().await;
}

#[tokio::test]
async fn a_server_inside_is_reached_from_inside() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let line = "python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & \
                for i in $(seq 200); do curl -s --noproxy '*' http://127.0.0.1:8123/ >page && break; sleep 0.05; done; grep -c Directory page";
    let (_, text) = world.run(line).await;
    assert!(text.trim().parse::<u32>().is_ok_and(|count| count > 0), "{text}");
}

#[tokio::test]
async fn the_proxy_reaches_listed_hosts_and_names_the_others() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let world = World::with(|facts| facts.hosts = vec![("localhost".to_owned(), Some(port))]);
    if !world.is_whole().await {
        return;
    }
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer =
                b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nthrough"[..].to_vec();
            tokio::io::AsyncWriteExt::write_all(&mut stream, &answer[..answer.len() - 1]).await.unwrap();
        }
    });
    let ask = |host: &str| {
        format!(
            "p=${{HTTP_PROXY#http://}}; exec 3<>/dev/tcp/${{p%:*}}/${{p#*:}}; \
             printf 'GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n' >&3; cat <&3"
        )
    };
    let (finished, text) = world.run(&ask(&format!("localhost:{port}"))).await;
    assert!(text.contains("throug"), "{text}");
    assert!(finished.refused_hosts.is_empty());
    let (finished, text) = world.run(&ask("elsewhere.example")).await;
    assert!(text.contains("403") && text.contains("network:elsewhere.example:80"), "{text}");
    assert_eq!(finished.refused_hosts, ["elsewhere.example:80"]);
}

#[tokio::test]
async fn ssh_goes_through_the_proxy_to_listed_hosts() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let world = World::with(|facts| facts.hosts = vec![("localhost".to_owned(), Some(port))]);
    if !world.is_whole().await {
        return;
    }
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut line = [0; 6];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut line).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"SSH-2.0 answer\n").await.unwrap();
    });
    // As ssh starts it, with the host and port put in.
    let line = format!(
        "c=${{GIT_SSH_COMMAND#*ProxyCommand=}}; c=${{c%%%*}}; echo hello | $c localhost {port}; \
         echo hello | $c elsewhere.example 22"
    );
    let (finished, text) = world.run_with(&line, &["ssh"]).await;
    assert!(text.starts_with("SSH-2.0 answer\n"), "{text}");
    assert_eq!(finished.refused_hosts, ["elsewhere.example:22"]);
}

/// A command that nobody approved: no host, no file that runs later, no cache that the user's own builds use.
#[tokio::test]
async fn a_strict_command_gets_less() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    repository(&world);
    fs::create_dir_all(world.home.join(".cargo/registry")).unwrap();
    fs::create_dir_all(world.workspace.join(".github/workflows")).unwrap();
    let allowance = |git| Allowance { strict: true, git, ..Allowance::default() };
    let run = async |line: &str, keeps_git: bool| {
        let git = if keeps_git { GitAccess::ReadOnly } else { GitAccess::Copy };
        let spawn = world.spawn(line).confine(world.sandbox.clone(), allowance(git));
        let finished = spawn.run(&tokio_util::sync::CancellationToken::new()).await.unwrap();
        (finished.end, finished.refused_hosts.clone(), finished.stdout.text())
    };
    assert_eq!(run("echo x > new && mkdir -p target", true).await.0, End::Exited(0));
    assert_eq!(run("echo x > .git/note", false).await.0, End::Exited(0));
    for line in [
        "echo x > .git/other",
        "echo x > .github/workflows/ci.yml",
        "mv .github g",
        "echo x > $HOME/.cargo/registry/x",
        "echo x > .git/hooks/pre-commit",
    ] {
        let (end, _, text) = run(line, true).await;
        assert_ne!(end, End::Exited(0), "{line}: {text}");
    }
    let ask = "p=${HTTP_PROXY#http://}; exec 3<>/dev/tcp/${p%:*}/${p#*:}; \
               printf 'CONNECT index.crates.io:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3";
    let (_, hosts, text) = run(ask, true).await;
    assert!(text.contains("403"), "{text}");
    assert_eq!(hosts, ["index.crates.io:443"]);
    assert!(world.sandbox.missing_run_later().contains(&world.workspace.join(".vscode")));
}

#[tokio::test]
async fn a_port_of_our_own_is_never_opened() {
    let world = World::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for spelling in
        ["port:", "network:localhost:", "network:127.0.0.1:", "network:127.1.2.3:", "network:0.0.0.0:"]
    {
        let grant = Grant::parse(&format!("{spelling}{port}")).unwrap();
        let allowance = Allowance::new(vec![grant]);
        let refused = world.sandbox.policy(process::sandbox::Mode::Namespaces, &allowance, &world.workspace);
        assert!(refused.unwrap_err().to_string().contains("Dragoman's own"), "{spelling}");
    }
}

/// The wall where user namespaces are forbidden.
#[tokio::test]
async fn the_smaller_wall_keeps_its_fewer_promises() {
    let world = World::with(|facts| facts.without_namespaces = true);
    let support = process::sandbox_support(&world.sandbox).await;
    if !matches!(support, Support::Landlock { .. }) {
        return eprintln!("not tried: {}", support.sentence());
    }
    let grant = [Grant::Network];
    for (line, inside) in [
        ("echo x > new && mkdir a && mv new a", true),
        ("echo x > $TMPDIR/x && cat $TMPDIR/x", true),
        ("cat $OUTSIDE/file", true),
        ("echo x > $OUTSIDE/new", false),
        ("rm $OUTSIDE/file", false),
        ("echo x > $HOME/.bashrc", false),
        ("cat $HOME/.ssh/id_ed25519", false),
        ("cat $HOME/.config/dragoman/config.json", false),
        ("ln $HOME/.netrc copy && cat copy", false),
        ("exec 3<>/dev/tcp/127.0.0.1/9", false),
        ("unshare -U true", false),
    ] {
        let (finished, text) = world.run(line).await;
        assert_eq!(finished.end == End::Exited(0), inside, "{line}: {text}");
    }
    let strict = Allowance { strict: true, ..Allowance::default() };
    let refused = world.spawn("true").confine(world.sandbox.clone(), strict);
    let refused = refused.run(&tokio_util::sync::CancellationToken::new()).await;
    assert!(
        refused.unwrap_err().to_string().contains("smaller sandbox"),
        "a strict command needs the whole wall"
    );
    // The network is a grant here as well.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = world.spawn(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    let connect = connect.confine(world.sandbox.clone(), Allowance::new(grant.to_vec()));
    let connected = connect.run(&tokio_util::sync::CancellationToken::new()).await.unwrap();
    assert_eq!(connected.end, End::Exited(0), "{}", connected.stdout.text());
}
