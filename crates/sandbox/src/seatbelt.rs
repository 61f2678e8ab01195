//! The same policy as a profile for macOS's sandbox, as text. Nothing starts it yet: it has to be tried on a Mac first.
//!
//! The last matching rule wins there, so the order is: everything, nothing written, writable folders, protected ones,
//! secrets.

use std::fmt::Write as _;
use std::path::Path;

use crate::policy::{Network, Policy};

pub fn profile(policy: &Policy) -> String {
    let mut text = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    let mut rule = |verdict: &str, operations: &str, path: &Path| {
        let _ = writeln!(text, "({verdict} {operations} (subpath {}))", quote(path));
    };
    let temporary = [policy.temporary.clone(), "/dev".into()];
    for path in policy.writable.iter().chain(&temporary) {
        rule("allow", "file-write*", path);
    }
    for path in &policy.protected {
        rule("deny", "file-write*", path);
    }
    for path in policy.hidden.iter().chain(&policy.unreadable) {
        rule("deny", "file-read* file-write*", path);
    }
    text.push_str(
        "(deny process-info* (target others))\n(deny signal (target others))\n(deny mach-priv-task-port)\n",
    );
    if policy.network != Network::Open {
        text.push_str("(deny network*)\n(allow network-bind network-inbound (local ip \"localhost:*\"))\n");
        text.push_str("(allow network-outbound (remote unix-socket))\n");
        for port in &policy.ports {
            let _ = writeln!(text, "(allow network-outbound (remote ip \"localhost:{port}\"))");
        }
    }
    text
}

/// A string of the profile's language: quotes and backslashes are escaped.
fn quote(path: &Path) -> String {
    let text = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Mode;

    fn policy(network: Network) -> Policy {
        Policy {
            mode: Mode::Landlock,
            writable: vec!["/Users/me/shop".into()],
            protected: vec!["/Users/me/shop/.git/hooks".into()],
            guarded: Vec::new(),
            hidden: vec!["/Users/me/.ssh".into(), "/Users/me/a \"b\"".into()],
            unreadable: vec!["/Users/me/shop/.env".into()],
            exposed: Vec::new(),
            temporary: "/private/tmp/x".into(),
            network,
            ports: vec![5432],
            directory: "/Users/me/shop".into(),
            environment: Vec::new(),
            git_copies: Vec::new(),
            withheld: Vec::new(),
            memory: None,
            terminal: false,
        }
    }

    #[test]
    fn rules_stand_in_the_order_in_which_they_win() {
        let text = profile(&policy(Network::Closed));
        let at = |rule: &str| text.find(rule).unwrap_or_else(|| panic!("{rule} is missing in\n{text}"));
        let order = [
            at("(deny file-write*)\n"),
            at("(allow file-write* (subpath \"/Users/me/shop\"))"),
            at("(deny file-write* (subpath \"/Users/me/shop/.git/hooks\"))"),
            at("(deny file-read* file-write* (subpath \"/Users/me/.ssh\"))"),
            at("(deny file-read* file-write* (subpath \"/Users/me/shop/.env\"))"),
            at("(deny network*)"),
            at("(allow network-outbound (remote ip \"localhost:5432\"))"),
        ];
        assert!(order.is_sorted(), "{text}");
        assert!(text.contains(r#"(subpath "/Users/me/a \"b\"")"#), "{text}");
    }

    #[test]
    fn an_open_network_has_no_rule() {
        assert!(!profile(&policy(Network::Open)).contains("network"));
    }
}
