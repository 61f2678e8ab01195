//! Ports of this process, which no grant opens.

use std::collections::BTreeSet;
use std::fs;

/// Ports that this process listens on.
pub(crate) fn own_ports() -> BTreeSet<u16> {
    let own = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let sockets: BTreeSet<String> = own
        .filter_map(|entry| fs::read_link(entry.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut ports = BTreeSet::new();
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            // Local address, state (0A: listening) and number of the socket.
            let (Some(local), Some(&"0A"), Some(socket)) = (words.get(1), words.get(3), words.get(9)) else {
                continue;
            };
            let port = local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
            ports.extend(port.filter(|_| sockets.contains(*socket)));
        }
    }
    ports
}
