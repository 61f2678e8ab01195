//! The network inside of the namespace: loopback, and sockets that listen there while the parent answers them.
//! A listening socket belongs to the namespace it was made in, whichever process accepts on it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType};

use super::{Setup, SetupError, Step};
use crate::policy::{Network, Policy};

/// Variables that lead programs to the proxy.
pub(super) type Variables = Vec<(&'static str, String)>;

/// Most sockets that are handed over in one message.
const MOST: usize = 32;

pub(super) fn set_up(policy: &Policy, channel: Option<&UnixStream>) -> Setup<Variables> {
    if policy.network == Network::Open {
        return Ok(Variables::new());
    }
    super::privileges::leave_network()?;
    let mut variables = Variables::new();
    raise_loopback().step("loopback")?;
    let mut listeners = Vec::new();
    if policy.network == Network::Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).step("the proxy's port")?;
        let port = listener.local_addr().step("the proxy's port")?.port();
        variables = proxy_variables(port);
        listeners.push(listener);
    }
    for port in &policy.ports {
        listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).step("a granted port")?);
    }
    if listeners.is_empty() {
        return Ok(variables);
    }
    let channel = channel.ok_or_else(|| SetupError("nobody answers its proxy".to_owned()))?;
    hand_over(channel, &listeners).step("handing over sockets")?;
    Ok(variables)
}

fn proxy_variables(port: u16) -> Variables {
    let address = format!("http://127.0.0.1:{port}");
    let here = "localhost,127.0.0.1,::1".to_owned();
    let mut variables: Variables =
        ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"]
            .into_iter()
            .map(|name| (name, address.clone()))
            .collect();
    variables.extend([
        ("NO_PROXY", here.clone()),
        ("no_proxy", here),
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
    ]);
    variables
}

fn hand_over(channel: &UnixStream, listeners: &[TcpListener]) -> io::Result<()> {
    let sockets: Vec<_> = listeners.iter().take(MOST).map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("too many ports"));
    }
    rustix::net::sendmsg(channel, &[IoSlice::new(&[1])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Loopback is down in a new network namespace.
fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: `ifreq` is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l'.cast_signed() as libc::c_char;
    request.ifr_name[1] = b'o'.cast_signed() as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // The C libraries of Linux differ in the type of the number.
    let number = libc::SIOCSIFFLAGS as _;
    // SAFETY: the socket is open and the request is a valid `ifreq` with a name that ends with a zero.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), number, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
