//! The address of a database: `postgres://user:password@host:port/name?…`.
//!
//! Must not know connections. Invariants: an address is shown without user and password; the certificate of a server that
//! is not on this machine is always verified.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use domain::Failure;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection without a sign of life is given up after about this long.
const SILENCE: Duration = Duration::from_secs(10);

/// Where the database is and how to get in. Its `Debug` and `Display` hold no secret.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    /// Authorities in PEM form that are trusted beside the system's.
    pub(crate) authorities: Vec<PathBuf>,
    shown: String,
}

/// Whether a setting names a PostgreSQL database.
pub fn is_address(text: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
}

impl Address {
    /// Reads an address. `authority`: a file of certificates that the user trusts for all connections.
    pub fn parse(text: &str, authority: Option<PathBuf>) -> Result<Self, Failure> {
        if !is_address(text) {
            return Err(invalid("it must begin with postgres://"));
        }
        let (text, mode, root_file) = take_tls_parameters(text);
        let mut config: Config = text.parse().map_err(|_| invalid("it cannot be read"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("it names no host"));
        }
        let is_local = is_local(&config);
        check_permitted(&config)?;
        let mode = match (mode.as_deref(), is_local) {
            (None | Some("disable" | "allow" | "prefer"), true) => SslMode::Disable,
            (None | Some("require" | "verify-ca" | "verify-full"), _) => SslMode::Require,
            (Some("disable" | "allow" | "prefer"), false) => {
                return Err(invalid("`sslmode` may be disable or prefer only for a server on this machine"));
            }
            (Some(_), _) => return Err(invalid("`sslmode` has an unknown value")),
        };
        config.ssl_mode(mode).connect_timeout(CONNECT_TIMEOUT).application_name("dragoman");
        config.keepalives_idle(SILENCE).keepalives_interval(SILENCE / 5).keepalives_retries(3);
        config.tcp_user_timeout(SILENCE);
        let shown = shown(&config);
        Ok(Self { config, authorities: root_file.into_iter().chain(authority).collect(), shown })
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.config.get_ssl_mode() == SslMode::Require
    }
}

/// Every server that the address could lead to.
fn check_permitted(config: &Config) -> Result<(), Failure> {
    // A socket of this machine is a path.
    let names = config.get_hosts().iter().map(host_name).filter(|name| !name.starts_with('/'));
    let figures = config.get_hostaddrs().iter().map(|address| match address {
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => format!("[{address}]"),
    });
    let ports = if config.get_ports().is_empty() { &[5432][..] } else { config.get_ports() };
    for host in names.chain(figures) {
        for port in ports {
            domain::hosts::check_address(&format!("postgres://{host}:{port}/"))?;
        }
    }
    Ok(())
}

/// The hosts and the name of the database.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.shown)
    }
}

fn invalid(what: &str) -> Failure {
    Failure::config(format!("The setting `store` is not the address of a PostgreSQL database: {what}."))
        .hint("Write postgres://USER:PASSWORD@HOST/DATABASE, with % escapes for special characters; see `dragoman docs scale`.")
}

/// Takes `sslmode` and `sslrootcert` out: the driver does not know all their values.
fn take_tls_parameters(text: &str) -> (String, Option<String>, Option<PathBuf>) {
    let Some((address, query)) = text.split_once('?') else { return (text.to_owned(), None, None) };
    let (mut mode, mut file, mut rest) = (None, None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value.to_owned()),
            Some(("sslrootcert", "system")) => {}
            Some(("sslrootcert", value)) => file = Some(PathBuf::from(decode(value))),
            _ => rest.push(pair),
        }
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    (format!("{address}{query}"), mode, file)
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let (b'%', Some(byte)) = (first, escaped) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_local(config: &Config) -> bool {
    let named = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    named && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(host_name);
    let hosts: Vec<String> = match config.get_hosts().is_empty() {
        true => config.get_hostaddrs().iter().map(ToString::to_string).collect(),
        false => hosts.collect(),
    };
    let name = config.get_dbname().or_else(|| config.get_user()).unwrap_or_default();
    format!("{} on {}", name, hosts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for text in [
            "postgres://me:hunter2hunter2@db.example.com:5433/chats",
            "postgresql://me:hunter2hunter2@db.example.com/chats?sslmode=verify-full",
            "postgres://me@db.example.com/chats?password=hunter2hunter2",
        ] {
            let address = Address::parse(text, None).unwrap();
            assert_eq!(address.to_string(), "chats on db.example.com");
            assert!(!format!("{address:?}").contains("hunter2"));
            assert!(address.uses_tls(), "{text}");
        }
        for text in
            ["postgres://me:hunter2hunter2@", "postgres://me:hunter2hunter2@h:x/", "mysql://hunter2hunter2"]
        {
            let failure = Address::parse(text, None).unwrap_err();
            assert!(!failure.to_string().contains("hunter2"), "{failure}");
        }
    }

    #[test]
    fn only_a_server_of_this_machine_is_used_without_tls() {
        let uses_tls = |text: &str| Address::parse(text, None).map(|address| address.uses_tls());
        for local in [
            "postgres://localhost/a",
            "postgres://127.0.0.1/a",
            "postgres://[::1]/a",
            "postgres:///a?host=/run/postgresql",
            "postgres://%2Frun%2Fpostgresql/a",
            "postgres://localhost/a?sslmode=disable",
        ] {
            assert_eq!(uses_tls(local), Ok(false), "{local}");
        }
        assert_eq!(uses_tls("postgres://localhost/a?sslmode=verify-full"), Ok(true));
        for remote in ["disable", "prefer", "allow", "whatever"] {
            uses_tls(&format!("postgres://db.example.com/a?sslmode={remote}")).unwrap_err();
        }
        uses_tls("postgres://localhost,db.example.com/a?sslmode=disable").unwrap_err();
        uses_tls("postgres://localhost/a?hostaddr=203.0.113.1&sslmode=disable").unwrap_err();
    }

    #[test]
    fn a_file_of_authorities_may_stand_in_the_address() {
        let address = Address::parse(
            "postgres://db.example.com/a?sslrootcert=%2Fetc%2Fmy%20ca.pem&sslmode=verify-ca",
            Some("/etc/own.pem".into()),
        )
        .unwrap();
        assert_eq!(address.authorities, ["/etc/my ca.pem", "/etc/own.pem"].map(PathBuf::from));
    }
}
