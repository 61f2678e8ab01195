//! System calls for the attempts. Each asks for something real that does no harm, or passes arguments that the kernel
//! refuses after it has looked at the caller's rights; so “not permitted” and “no such call” are the only good answers.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::ExitCode;
use std::ptr::null;
use std::time::Duration;

use libc::{c_int, c_long, syscall};
use rustix::fs::{Mode, OFlags, ResolveFlags};

const WAIT: Duration = Duration::from_millis(300);

pub(super) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let escaped = match words.as_slice() {
        [name, path] if files(name, path).is_some() => files(name, path),
        [name, pid] if processes(name, pid).is_some() => processes(name, pid),
        [name, rest @ ..] if network(name, rest).is_some() => network(name, rest),
        [name] => rights(name),
        ["memory", megabytes] => megabytes.parse().ok().map(take_memory),
        ["unshare", flags] => {
            Some(flags.parse().is_ok_and(|flags: c_int| call(libc::SYS_unshare, flags.into())))
        }
        _ => None,
    };
    // An attempt that cannot be read must not look blocked.
    ExitCode::from(u8::from(!escaped.unwrap_or(true)))
}

/// Takes memory and keeps it for a moment.
fn take_memory(megabytes: usize) -> bool {
    let mut taken = vec![0_u8; megabytes << 20];
    taken.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::thread::sleep(WAIT);
    std::hint::black_box(&taken);
    true
}

/// Whether the kernel did it, or would have with better arguments.
fn let_through(result: c_long) -> bool {
    let error = io::Error::last_os_error().raw_os_error();
    result >= 0 || !matches!(error, Some(libc::EPERM | libc::ENOSYS | libc::EACCES | libc::ESRCH))
}

/// A call with one number and nothing else.
fn call(number: c_long, first: c_long) -> bool {
    // SAFETY: no call that is made this way is given an address other than zero, which the kernel refuses.
    let_through(unsafe { syscall(number, first, 0, 0, 0, 0) })
}

fn files(name: &str, path: &str) -> Option<bool> {
    let text = CString::new(path).ok()?;
    Some(match name {
        // SAFETY: the path ends with a zero.
        "unmount" => let_through(unsafe { syscall(libc::SYS_umount2, text.as_ptr(), libc::MNT_DETACH) }),
        "mknod" => {
            // SAFETY: the path ends with a zero.
            let made = unsafe { libc::mknod(text.as_ptr(), libc::S_IFBLK | 0o600, libc::makedev(8, 0)) } == 0;
            let _ = std::fs::remove_file(path);
            made
        }
        "open-write" => std::fs::File::options().write(true).open(path).is_ok(),
        "open-by-handle" => call(libc::SYS_open_by_handle_at, -1),
        "has-setuid" => rustix::thread::no_new_privs().is_ok_and(|set| !set),
        "unix" => UnixStream::connect(path).is_ok(),
        "datagram" => UnixDatagram::unbound().and_then(|socket| socket.send_to(b"x", path)).is_ok(),
        "pair-datagram" => UnixDatagram::pair().and_then(|(socket, _)| socket.send_to(b"x", path)).is_ok(),
        "make-setuid" => {
            File::options().write(true).create_new(true).mode(0o4755).open(path).is_ok_and(is_setuid)
        }
        "openat2-setuid" => {
            let flags = OFlags::WRONLY | OFlags::CREATE;
            let mode = Mode::from_raw_mode(0o4755);
            let made = rustix::fs::openat2(rustix::fs::CWD, path, flags, mode, ResolveFlags::empty());
            made.is_ok_and(|file| is_setuid(File::from(file)))
        }
        "mknod-setuid" => {
            // SAFETY: the path ends with a zero.
            let made = unsafe { libc::mknod(text.as_ptr(), libc::S_IFREG | 0o4755, 0) } == 0;
            made && File::open(path).is_ok_and(is_setuid)
        }
        "abstract" => {
            let address = std::os::unix::net::SocketAddr::from_abstract_name(path);
            address.and_then(|address| UnixStream::connect_addr(&address)).is_ok()
        }
        _ => return None,
    })
}

fn is_setuid(file: File) -> bool {
    file.metadata().is_ok_and(|kind| kind.permissions().mode() & 0o4000 != 0)
}

fn processes(name: &str, pid: &str) -> Option<bool> {
    let pid: c_long = pid.parse().ok()?;
    // SAFETY: every call below takes numbers, and addresses of zero with lengths of zero.
    let done = unsafe {
        match name {
            "signal" => syscall(libc::SYS_kill, pid, 0),
            "signal-group" => match libc::getpgid(c_int::try_from(pid).unwrap_or(-1)) {
                -1 => -1,
                group => syscall(libc::SYS_kill, -c_long::from(group), 0),
            },
            // The end of this process detaches it.
            "ptrace" => syscall(libc::SYS_ptrace, c_long::from(libc::PTRACE_SEIZE), pid, 0_usize, 0_usize),
            "vm-read" => syscall(libc::SYS_process_vm_readv, pid, 0, 0, 0, 0, 0),
            "vm-write" => syscall(libc::SYS_process_vm_writev, pid, 0, 0, 0, 0, 0),
            "kcmp" => syscall(libc::SYS_kcmp, pid, pid, 0, 0, 0),
            "pidfd-signal" | "pidfd-getfd" => match syscall(libc::SYS_pidfd_open, pid, 0) {
                -1 => -1,
                handle if name == "pidfd-signal" => syscall(libc::SYS_pidfd_send_signal, handle, 0, 0, 0),
                handle => syscall(libc::SYS_pidfd_getfd, handle, 0, 0),
            },
            _ => return None,
        }
    };
    Some(let_through(done))
}

fn network(name: &str, words: &[&str]) -> Option<bool> {
    Some(match (name, words) {
        ("udp", [host, port]) => send_packet(address(host, port)?),
        ("tcp", [host, port]) => match TcpStream::connect_timeout(&address(host, port)?, WAIT) {
            Ok(_) => true,
            // Nobody answered, but the question left the machine.
            Err(error) => error.kind() == io::ErrorKind::TimedOut,
        },
        ("socket", [family, kind]) => {
            // SAFETY: a call with three numbers.
            unsafe { libc::socket(family.parse().ok()?, kind.parse().ok()?, 0) >= 0 }
        }
        ("interfaces", []) => {
            let table = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
            table.lines().skip(2).any(|line| !line.trim_start().starts_with("lo:"))
        }
        ("proxy", [target]) => through_proxy(target).unwrap_or(false),
        ("front", [host, other]) => fronted(host, &format!("Host: {other}\r\n")).unwrap_or(false),
        ("front-twice", [host, other]) => {
            fronted(host, &format!("Host: {host}\r\nHost: {other}\r\n")).unwrap_or(false)
        }
        _ => return None,
    })
}

fn address(host: &str, port: &str) -> Option<SocketAddr> {
    Some(SocketAddr::new(host.parse::<IpAddr>().ok()?, port.parse().ok()?))
}

/// Delivered, as far as the sender can know: nobody says that there is no such port.
fn send_packet(target: SocketAddr) -> bool {
    let own = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let sent = UdpSocket::bind(own).and_then(|socket| {
        socket.connect(target)?;
        socket.send(b"CANARY")?;
        socket.set_read_timeout(Some(WAIT))?;
        match socket.recv(&mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(error),
            _ => Ok(()),
        }
    });
    sent.is_ok()
}

fn through_proxy(target: &str) -> io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "an attempt looks at the environment it was given")]
    let proxy = std::env::var("HTTPS_PROXY").unwrap_or_default();
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    Ok(answer.ends_with(b"200"))
}

/// A request to one host that names another one.
fn fronted(host: &str, lines: &str) -> io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "an attempt looks at the environment it was given")]
    let proxy = std::env::var("HTTP_PROXY").unwrap_or_default();
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(format!("GET http://{host}/ HTTP/1.1\r\n{lines}\r\n").as_bytes())?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    Ok(!answer.ends_with(b"403"))
}

fn rights(name: &str) -> Option<bool> {
    Some(match name {
        "mount" => call(libc::SYS_mount, 0),
        "open-tree" => call(libc::SYS_open_tree, -1),
        "fsopen" => call(libc::SYS_fsopen, 0),
        "mount-setattr" => call(libc::SYS_mount_setattr, -1),
        "chroot" => call(libc::SYS_chroot, 0),
        "setns" => call(libc::SYS_setns, -1),
        "keyctl" => {
            // SAFETY: a call with numbers: asks for the number of the user's keyring.
            let_through(unsafe { syscall(libc::SYS_keyctl, 0, -4, 0) })
        }
        "bpf" => call(libc::SYS_bpf, 9999),
        "perf" => call(libc::SYS_perf_event_open, 0),
        "userfaultfd" => call(libc::SYS_userfaultfd, 0),
        "io-uring" => call(libc::SYS_io_uring_setup, 0),
        "module" => call(libc::SYS_init_module, 0),
        // Flags that no kernel knows.
        "kexec" => let_through(unsafe_kexec()),
        "clock" => call(libc::SYS_clock_settime, libc::CLOCK_REALTIME.into()),
        "hostname" => unsafe_hostname(),
        // The size of the buffer of messages.
        "syslog" => call(libc::SYS_syslog, 10),
        "x32" => call(0x4000_0000 + libc::SYS_ptrace, 0),
        "ptrace-self" => call(libc::SYS_ptrace, libc::PTRACE_TRACEME.into()),
        "clone-user" => clone_user(),
        "clone3-user" => clone3_user(),
        "setuid" => change_user(),
        "capability" => has_capability(),
        "descriptors" => has_descriptor(),
        "above" => std::fs::File::options().write(true).open("../../outside/file").is_ok(),
        "tiocsti" => {
            let byte = b'x';
            // SAFETY: the address is that of a byte.
            let_through(unsafe { libc::ioctl(0, libc::TIOCSTI, &raw const byte) }.into())
        }
        _ => return None,
    })
}

fn unsafe_kexec() -> c_long {
    // SAFETY: no segments and flags that are refused: nothing is loaded.
    unsafe { syscall(libc::SYS_kexec_load, 0, 0, null::<u8>(), c_long::from(u16::MAX)) }
}

fn unsafe_hostname() -> bool {
    // SAFETY: the length is refused before the address is looked at.
    let_through(unsafe { syscall(libc::SYS_sethostname, null::<u8>(), 100_000) })
}

fn clone_user() -> bool {
    let flags = c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
    // SAFETY: a child with a copy of this memory, which ends at once.
    let child = unsafe { syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if child == 0 {
        // SAFETY: ends the child at once; no destructor or exit handler of this program runs.
        unsafe { libc::_exit(0) };
    }
    let_through(child)
}

fn clone3_user() -> bool {
    // As `struct clone_args`: flags first, the signal of the end fifth.
    let mut arguments = [0_u64; 11];
    arguments[0] = libc::CLONE_NEWUSER as u64;
    arguments[4] = libc::SIGCHLD as u64;
    // SAFETY: the structure is as large as said; the child has a copy of this memory and ends at once.
    let child = unsafe { syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) };
    if child == 0 {
        // SAFETY: ends the child at once; no destructor or exit handler of this program runs.
        unsafe { libc::_exit(0) };
    }
    let_through(child)
}

/// Root tries to become another user, everybody else to become root.
fn change_user() -> bool {
    let target = if rustix::process::getuid().is_root() { 1 } else { 0 };
    // SAFETY: a call with numbers, in a process of one thread that ends at once.
    unsafe { syscall(libc::SYS_setresuid, target, target, target) == 0 }
}

fn has_capability() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let sets = status.lines().filter(|line| line.starts_with("CapEff") || line.starts_with("CapBnd"));
    sets.filter_map(|line| line.split_ascii_whitespace().nth(1))
        .any(|set| set.bytes().any(|digit| digit != b'0'))
}

fn has_descriptor() -> bool {
    // SAFETY: asks for flags of a number, open or not.
    (3..256).any(|number| unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0)
}
