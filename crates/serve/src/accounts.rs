//! Accounts of a server: names with a role and a token, of which only a hash is stored.
//!
//! Must not know requests. Invariants: a token is shown once and never stored; comparing one takes the same time whatever
//! differs; a revoked token is refused at once, and what it had opened ends within `SWEEP`, as it does when the account is
//! changed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use domain::{CancellationToken, Failure, Store};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::audit::{Act, Audit, hex, now};
use crate::caller::{Caller, Role};

const KIND: &str = "serve.accounts";
const MOST_ACCOUNTS: usize = 1_000;
const LONGEST_NAME: usize = 40;
/// A token begins with it, so that scanners for secrets find one that was published.
const PREFIX: &str = "dragoman_";
/// How often open connections are compared with the stored accounts.
const SWEEP: Duration = Duration::from_secs(2);
/// The account of commands on the machine itself, in the log.
pub const LOCAL: &str = "(this machine)";

/// An account as it is shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Account {
    pub name: String,
    pub role: Role,
    /// US dollars in all.
    pub budget: Option<f64>,
    /// Empty: all folders that the server names.
    pub workspaces: Vec<PathBuf>,
    /// Milliseconds since 1970.
    pub created: u64,
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    role: String,
    hash: String,
    created: u64,
    #[serde(default)]
    budget: Option<f64>,
    #[serde(default)]
    workspaces: Vec<PathBuf>,
}

/// Makes an account and gives its token, which nothing shows again.
pub async fn add(
    store: &Arc<dyn Store>,
    name: &str,
    role: Role,
    budget: Option<f64>,
    workspaces: Vec<PathBuf>,
) -> Result<String, Failure> {
    check_name(name)?;
    check_budget(budget)?;
    if list(store.as_ref()).await?.len() >= MOST_ACCOUNTS {
        return Err(Failure::user(format!("There are {MOST_ACCOUNTS} accounts already."))
            .hint("Revoke some with `dragoman serve tokens revoke NAME`."));
    }
    let secret = web::random_id().map_err(|error| Failure::internal(error.to_string()))?;
    let token = format!("{PREFIX}{secret}");
    let stored =
        Stored { role: role.as_str().to_owned(), hash: hash(&token), created: now(), budget, workspaces };
    let value = serde_json::to_string(&stored).map_err(|error| Failure::internal(error.to_string()))?;
    if !store.insert(KIND, name, value).await? {
        return Err(Failure::user(format!("There is an account {name} already."))
            .hint("Choose another name, or revoke it first with `dragoman serve tokens revoke NAME`."));
    }
    let act = Act { who: LOCAL, action: "token added", chat: None, detail: Some(name) };
    Audit::new(store.clone()).write(act).await?;
    Ok(token)
}

/// In the order of names.
pub async fn list(store: &dyn Store) -> Result<Vec<Account>, Failure> {
    let records = store.records(KIND, "", MOST_ACCOUNTS).await?;
    // A record that cannot be read is nobody's account.
    Ok(records.into_iter().filter_map(|(name, value)| account(name, &value)).collect())
}

pub async fn revoke(store: &Arc<dyn Store>, name: &str) -> Result<(), Failure> {
    if !store.remove(KIND, name).await? {
        return Err(no_account(name));
    }
    let act = Act { who: LOCAL, action: "token revoked", chat: None, detail: Some(name) };
    Audit::new(store.clone()).write(act).await
}

/// Gives an account another role or budget; its token stays. What it has open ends.
pub async fn change(
    store: &Arc<dyn Store>,
    name: &str,
    role: Option<Role>,
    budget: Option<f64>,
) -> Result<(), Failure> {
    check_budget(budget)?;
    let stored = store.get(KIND, name).await?.and_then(|value| serde_json::from_str::<Stored>(&value).ok());
    let mut stored = stored.ok_or_else(|| no_account(name))?;
    if let Some(role) = role {
        role.as_str().clone_into(&mut stored.role);
    }
    stored.budget = budget.or(stored.budget);
    let value = serde_json::to_string(&stored).map_err(|error| Failure::internal(error.to_string()))?;
    let detail = format!(
        "{name}: {}, {}",
        stored.role,
        stored.budget.map_or("no budget".into(), |it| format!("${it:.2}"))
    );
    // The log first: a change that it does not have does not happen.
    let act = Act { who: LOCAL, action: "account changed", chat: None, detail: Some(&detail) };
    Audit::new(store.clone()).write(act).await?;
    store.put(KIND, name, value).await
}

fn check_budget(budget: Option<f64>) -> Result<(), Failure> {
    if budget.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
        return Err(Failure::user("A budget is an amount of US dollars, 0 or more."));
    }
    Ok(())
}

fn no_account(name: &str) -> Failure {
    Failure::user(format!("There is no account {name}.")).hint("`dragoman serve tokens list` names them.")
}

fn account(name: String, value: &str) -> Option<Account> {
    let Stored { role, hash, created, budget, workspaces } = serde_json::from_str(value).ok()?;
    Some(Account { name, role: Role::parse(&role)?, budget, workspaces, created, hash })
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(Failure::user(format!(
            "The name of an account has at most {LONGEST_NAME} letters, digits and the characters - _ . @"
        )));
    }
    Ok(())
}

/// 256 random bits need no slow hash.
fn hash(token: &str) -> String {
    hex(digest(&SHA256, token.as_bytes()).as_ref())
}

/// The accounts of a server that runs. Cheap to clone.
#[derive(Clone)]
pub struct Accounts(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    /// Real paths of the folders that the server names.
    workspaces: Vec<PathBuf>,
    /// What ends with an account as it was when it connected.
    open: Mutex<HashMap<String, CancellationToken>>,
}

impl Accounts {
    /// Fails where a folder is not there.
    pub fn open(store: Arc<dyn Store>, workspaces: &[PathBuf]) -> Result<Self, Failure> {
        let workspaces: Result<Vec<PathBuf>, Failure> = workspaces.iter().map(|path| real(path)).collect();
        let shared = Arc::new(Shared { store, workspaces: workspaces?, open: Mutex::default() });
        tokio::spawn(sweep(Arc::downgrade(&shared)));
        Ok(Self(shared))
    }

    /// The caller whose token this is. Reads the store, so that a revoked token fails at once.
    pub async fn authenticate(&self, token: &str) -> Result<Option<Caller>, Failure> {
        self.find(&hash(token)).await
    }

    /// The caller of a hash that [`Accounts::authenticate`] let in before.
    pub(crate) async fn find(&self, hash: &str) -> Result<Option<Caller>, Failure> {
        let mut found = None;
        // Every account is compared, so that the time does not tell which one it was.
        for account in list(self.0.store.as_ref()).await? {
            if is_equal(&account.hash, hash) {
                found = Some(account);
            }
        }
        let Some(account) = found else { return Ok(None) };
        let ended = self.connections().entry(place(&account)).or_default().clone();
        let Account { name, role, budget, .. } = account;
        let workspaces = self.workspaces_of(&account.workspaces);
        Ok(Some(Caller { name, role, workspaces, budget, ended }))
    }

    pub(crate) fn hash(token: &str) -> String {
        hash(token)
    }

    /// Those of the server that the account names, or all.
    fn workspaces_of(&self, named: &[PathBuf]) -> Vec<PathBuf> {
        let all = self.0.workspaces.iter();
        if named.is_empty() {
            return all.cloned().collect();
        }
        let named: Vec<PathBuf> = named.iter().filter_map(|path| path.canonicalize().ok()).collect();
        all.filter(|path| named.contains(path)).cloned().collect()
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.0.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn real(path: &Path) -> Result<PathBuf, Failure> {
    let real = path.canonicalize().ok().filter(|path| path.is_dir());
    real.ok_or_else(|| {
        Failure::user(format!("{} is not a folder.", path.display())).hint("Name one with --workspace.")
    })
}

/// Ends what revoked and changed accounts have open.
async fn sweep(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(accounts) = shared.upgrade().map(Accounts) else { return };
        let Ok(known) = list(accounts.0.store.as_ref()).await else { continue };
        let known: HashSet<String> = known.iter().map(place).collect();
        accounts.connections().retain(|place, ended| {
            let is_known = known.contains(place);
            if !is_known {
                ended.cancel();
            }
            is_known
        });
    }
}

/// All that decides what an account may do.
fn place(account: &Account) -> String {
    let Account { name, role, budget, workspaces, hash, created: _ } = account;
    format!("{name} {hash} {role:?} {budget:?} {workspaces:?}")
}

fn is_equal(left: &str, right: &str) -> bool {
    let differing = left.bytes().zip(right.bytes()).fold(0, |sum, (left, right)| sum | (left ^ right));
    left.len() == right.len() && differing == 0
}
