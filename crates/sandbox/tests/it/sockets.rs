//! Local sockets: those of services outside are out of reach by every name, those made inside work.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener};

use process::End;

use crate::kit::World;

const CONNECT: &str = "import socket, sys\n\
                       for path in sys.argv[1:]:\n\
                       \x20   try:\n\
                       \x20       socket.socket(socket.AF_UNIX).connect(path); print('reached', path)\n\
                       \x20   except OSError as error: print(type(error).__name__)\n";

fn connect(paths: &[&str]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("\"{path}\"")).collect();
    format!("python3 - {} <<'END'\n{CONNECT}END", paths.join(" "))
}

#[tokio::test]
async fn no_name_leads_to_a_socket_of_a_service() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let bind = |name: &str| UnixListener::bind(world.home.join(name)).unwrap();
    let mut sockets = vec![bind("a b"), bind("old"), bind("first"), bind("plain")];
    fs::rename(world.home.join("old"), world.outside.join("renamed")).unwrap();
    fs::hard_link(world.home.join("first"), world.home.join("second")).unwrap();
    let folder = fs::File::open(&world.home).unwrap();
    sockets.push(UnixListener::bind(format!("/proc/self/fd/{}/odd", folder.as_raw_fd())).unwrap());
    sockets.push(UnixListener::bind(world.workspace.join("service")).unwrap());
    sockets.extend((0..300).map(|number| bind(&format!("n{number}"))));
    let names = [
        "$HOME/a b",
        "$OUTSIDE/renamed",
        "$HOME/second",
        "$HOME/first",
        "$HOME/plain",
        "$HOME/odd",
        "service",
        "../plain",
        "$HOME/n299",
    ];
    let (_, text) = world.run(&connect(&names)).await;
    assert!(!text.contains("reached"), "{text}");
    assert_eq!(text.lines().count(), names.len(), "{text}");
    // One that is made while the command runs.
    let late = world.workspace.join("late");
    let line =
        format!("echo ready > ready; while ! test -S late; do sleep 0.02; done; {}", connect(&["late"]));
    let (_, (_, text)) = tokio::join!(
        async {
            while !world.workspace.join("ready").exists() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            sockets.push(UnixListener::bind(&late).unwrap());
        },
        world.run(&line)
    );
    assert_eq!(text, "PermissionError\n");
}

#[tokio::test]
async fn datagrams_name_nobody_outside() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let socket = UnixDatagram::bind(world.home.join("log")).unwrap();
    socket.set_nonblocking(true).unwrap();
    let line = "python3 - <<'END'\nimport os, socket\nlog = os.environ['HOME'] + '/log'\n\
                for make in (lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), \
                lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0], \
                lambda: socket.socket(socket.AF_UNIX, socket.SOCK_RAW)):\n\
                \x20   try: make().sendto(b'x', log); print('sent')\n\
                \x20   except OSError: print('refused')\nEND";
    let (_, text) = world.run(line).await;
    assert_eq!(text, "refused\n".repeat(3));
    assert!(socket.recv(&mut [0]).is_err());
}

/// A server and a client inside, by every kind of name, with sockets that wait and that do not.
#[tokio::test]
async fn sockets_that_were_made_inside_are_reached() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let line = "cat > t.py <<'END'\n\
        import os, socket, threading\n\
        def serve(server):\n\
        \x20   while True: server.accept()[0].sendall(b'hello')\n\
        def check(family, address, blocking, moved=None):\n\
        \x20   server = socket.socket(family); server.bind(address); server.listen()\n\
        \x20   threading.Thread(target=serve, args=(server,), daemon=True).start()\n\
        \x20   if moved: os.rename(address, moved)\n\
        \x20   client = socket.socket(family)\n\
        \x20   if not blocking: client.settimeout(10)\n\
        \x20   client.connect(moved or server.getsockname()); print(client.recv(5).decode(), server.getsockname() == address)\n\
        for blocking in (True, False):\n\
        \x20   check(socket.AF_UNIX, f'relative{blocking}', blocking)\n\
        \x20   check(socket.AF_UNIX, f'/tmp/absolute{blocking}', blocking)\n\
        \x20   check(socket.AF_UNIX, f'/dev/shm/a b{blocking}', blocking)\n\
        \x20   check(socket.AF_UNIX, f'before{blocking}', blocking, f'after{blocking}')\n\
        \x20   check(socket.AF_UNIX, f'\\0name{blocking}', blocking)\n\
        \x20   check(socket.AF_INET, ('127.0.0.1', 0), blocking)\n\
        os.umask(0o077); socket.socket(socket.AF_UNIX).bind('private'); print(oct(os.stat('private').st_mode & 0o777))\n\
        END\npython3 t.py";
    for grants in [&[][..], &["network"][..]] {
        let (finished, text) =
            world.run_with(&format!("rm -f after* relative* private /tmp/absolute*; {line}"), grants).await;
        assert_eq!(finished.end, End::Exited(0), "{grants:?}: {text}");
        assert_eq!(text.matches("hello").count(), 12, "{grants:?}: {text}");
        assert!(text.ends_with("0o700\n"), "{text}");
        let shown = text.lines().filter(|line| *line == "hello True").count();
        assert_eq!(shown, 8, "a path is shown as it was bound: {text}");
    }
}

#[tokio::test]
async fn names_without_a_path_are_those_of_the_sandbox() {
    use std::os::linux::net::SocketAddrExt;
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let name = format!("dragoman-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _socket = UnixListener::bind_addr(&address).unwrap();
    let line = format!("python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('\\\\0{name}')\"");
    for grants in [&[][..], &["network"][..]] {
        let (finished, text) = world.run_with(&line, grants).await;
        assert_ne!(finished.end, End::Exited(0), "{text}");
    }
}

/// The agent of a grant is reached, by its inode, wherever it lies.
#[tokio::test]
async fn a_socket_of_a_grant_is_reached() {
    let world = World::with(|facts| {
        let agent = facts.home.join("agent.sock").display().to_string();
        facts.variables.insert("SSH_AUTH_SOCK".to_owned(), agent);
    });
    if !world.is_whole().await {
        return;
    }
    let _agent = UnixListener::bind(world.home.join("agent.sock")).unwrap();
    assert!(world.run_with(&connect(&["$HOME/agent.sock"]), &["ssh"]).await.1.starts_with("reached"));
    assert!(!world.run(&connect(&["$HOME/agent.sock"])).await.1.contains("reached"));
}

/// Many connections at once, of several threads: each is answered once.
#[tokio::test]
async fn many_connections_are_answered() {
    let world = World::new();
    if !world.is_whole().await {
        return;
    }
    let line = "cat > m.py <<'END'\n\
        import socket, threading\n\
        server = socket.create_server(('127.0.0.1', 8127), backlog=64)\n\
        count = []\n\
        def serve():\n\
        \x20   while True: server.accept()[0].close()\n\
        threading.Thread(target=serve, daemon=True).start()\n\
        def ask():\n\
        \x20   for _ in range(50): socket.create_connection(('127.0.0.1', 8127), 20).close(); count.append(1)\n\
        threads = [threading.Thread(target=ask) for _ in range(4)]\n\
        for thread in threads: thread.start()\n\
        for thread in threads: thread.join()\n\
        print(len(count))\n\
        END\npython3 m.py";
    let (finished, text) = world.run(line).await;
    assert_eq!((finished.end, text.as_str()), (End::Exited(0), "200\n"));
}
