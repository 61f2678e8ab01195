//! The database that holds the chats: only the user's own files and variables name one.
//!
//! Invariant: the address is a secret, and so is its password alone.

use domain::Failure;

use crate::cursor::Cursor;
use crate::environment::Environment;
use crate::lazy_text::SecretSource;
use crate::secret::{Redactor, Secret};

pub(crate) const VARIABLE: &str = "DRAGOMAN_STORE";

/// The address of the database, looked up when it is needed.
#[derive(Clone, Debug)]
pub struct StoreAddress {
    source: SecretSource,
    redactor: Redactor,
}

impl StoreAddress {
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let source = cursor.secret()?;
        let address = Self { source, redactor: cursor.scope().redactor.clone() };
        if let Some(known) = address.source.known() {
            address.hide(&known);
        }
        Some(address)
    }

    pub async fn get(&self) -> Result<Secret, Failure> {
        let address = self.source.get().await?;
        self.hide(&address);
        Ok(address)
    }

    fn hide(&self, address: &Secret) {
        passwords(address.expose()).iter().for_each(|secret| self.redactor.add_secret(secret));
    }
}

impl PartialEq for StoreAddress {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// The passwords in an address, each as it is written and as it is meant. The user is no secret: `postgres` is a word of
/// many texts.
fn passwords(address: &str) -> Vec<String> {
    let Some((_, address)) = address.split_once("://") else { return Vec::new() };
    let end = address.find(['/', '?']).unwrap_or(address.len());
    let user = address[..end].rsplit_once('@').map(|(user, _)| user);
    let password = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let parameters = query.split('&').filter_map(|parameter| parameter.strip_prefix("password="));
    let written = password.into_iter().chain(parameters);
    written
        .flat_map(|written| {
            let meant = percent_encoding::percent_decode_str(written).decode_utf8_lossy().into_owned();
            [written.to_owned(), meant]
        })
        .collect()
}

/// Whether the user's own settings may name a database. It looks for the word only: most users have none, and the start
/// of a program does not resolve settings for it.
pub fn may_name_store(environment: &Environment) -> bool {
    let names = |text: &str| text.contains("store") || text.contains("extraConfigs");
    let in_variables =
        ["ECA_CONFIG", "DRAGOMAN_CONFIG"].iter().any(|name| environment.var(name).is_some_and(names));
    let in_files = || {
        let folders = [environment.eca_config_dir(), environment.config_dir()];
        let texts = folders.iter().filter_map(|folder| std::fs::read(folder.join("config.json")).ok());
        texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).any(|text| names(&text))
    };
    environment.var(VARIABLE).is_some() || in_variables || in_files()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_in_every_place() {
        let cases: [(&str, &[&str]); 4] = [
            ("postgres://me:p%40ssword@h/db?sslmode=require", &["p%40ssword", "p@ssword"]),
            ("postgres://h/db?user=me&password=hunter22", &["hunter22", "hunter22"]),
            ("postgres://postgres@%2Frun%2Fpostgresql/db", &[]),
            ("${cmd:pass show db}", &[]),
        ];
        for (address, expected) in cases {
            assert_eq!(passwords(address), expected, "{address}");
        }
    }
}
