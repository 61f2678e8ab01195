//! Names of files that hold secrets, and a look into those whose name alone does not tell.
//!
//! Letters in another case count as the same.

use std::fs;
use std::io::Read;
use std::path::Path;

/// Folders with the keys of a user.
const SECRET_FOLDERS: &[&str] =
    &[".aws", ".azure", ".gnupg", ".kube", ".password-store", ".secrets", ".ssh", "keyrings"];

const SECRET_NESTED_FOLDERS: &[(&str, &str)] = &[
    (".config", "gcloud"),
    (".config", "gh"),
    (".config", "op"),
    (".docker", "config.json"),
    (".mozilla", "firefox"),
];

const SECRET_FILES: &[&str] = &[
    ".dockercfg",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".vault-token",
    "_netrc",
    "application_default_credentials.json",
    "auth.json",
    "credentials",
    "environ",
    "kubeconfig",
    "master.key",
    "shadow",
    "terraform.tfstate",
    "wallet.dat",
];

/// Beginnings of names, whatever follows.
const SECRET_STEMS: &[&str] =
    &["credentials.", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "secret.", "secrets.", "service-account"];

const SECRET_ENDINGS: &[&str] =
    &[".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".ppk", ".tfvars"];

/// Endings of examples, which hold no secret.
const EXAMPLES: &[&str] =
    &[".dist", ".example", ".sample", ".template", ".tmpl", ".tpl", ".defaults", ".schema", ".pub"];

/// Endings of source code, which is read as part of every build.
#[rustfmt::skip]
const SOURCE: &[&str] = &[
    "c", "cc", "clj", "cpp", "cs", "css", "dart", "ex", "exs", "go", "h", "hpp", "hs", "html", "java", "jl", "js", "jsx",
    "kt", "lua", "md", "mjs", "ml", "php", "py", "rb", "rs", "scala", "sh", "sql", "svelte", "swift", "ts", "tsx", "vue",
    "zig",
];

/// As much of a file is looked at.
const LOOKED_AT: u64 = 256 * 1024;

/// Whether a file of this name usually holds keys or passwords.
pub fn is_secret(path: &Path) -> bool {
    let names = lower_names(path);
    let Some((file, folders)) = names.split_last() else { return false };
    if EXAMPLES.iter().any(|ending| file.ends_with(ending)) {
        return false;
    }
    file == ".env"
        || file.starts_with(".env.")
        || file.ends_with(".env")
        || SECRET_FILES.contains(&file.as_str())
        || SECRET_STEMS.iter().any(|stem| file.starts_with(stem))
        || SECRET_ENDINGS.iter().any(|ending| file.ends_with(ending))
        || folders.iter().any(|folder| SECRET_FOLDERS.contains(&folder.as_str()))
        || names.windows(2).any(|pair| SECRET_NESTED_FOLDERS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

/// Whether a file really holds keys or passwords, as far as a look into it tells: certificates without a key, settings of
/// package managers without a token and source code do not. A file that cannot be looked at counts as one that does.
pub fn holds_secrets(path: &Path) -> bool {
    if !is_secret(path) {
        return false;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    let is_in_secret_folder = lower_names(path.parent().unwrap_or(path))
        .iter()
        .any(|folder| SECRET_FOLDERS.contains(&folder.as_str()));
    if SOURCE.contains(&extension) && !is_in_secret_folder {
        return false;
    }
    let text = || {
        let file = fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|kind| kind.is_file()));
        let mut bytes = Vec::new();
        file?.take(LOOKED_AT).read_to_end(&mut bytes).ok()?;
        String::from_utf8(bytes).ok()
    };
    match (name.as_str(), extension) {
        (_, "pem") => text().is_none_or(|text| text.contains("PRIVATE KEY")),
        (".npmrc", _) => text().is_none_or(|text| {
            let literal = |line: &str| {
                let value = line.split_once('=').map(|(_, value)| value.trim()).unwrap_or_default();
                (line.contains("_auth") || line.contains("_password")) && !value.is_empty()
            };
            text.lines().any(|line| literal(line) && !line.contains("=${")) || has_user_in_address(&text)
        }),
        _ => true,
    }
}

/// `https://name:password@host`.
fn has_user_in_address(text: &str) -> bool {
    text.split("://")
        .skip(1)
        .any(|rest| rest.split(['/', '"', '\'', ' ', '\n']).next().unwrap_or_default().contains('@'))
}

/// Whether a folder of this name holds nothing but keys.
pub fn is_secret_folder(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    SECRET_FOLDERS.contains(&name.as_str())
}

pub(crate) fn lower_names(path: &Path) -> Vec<String> {
    path.components().map(|name| name.as_os_str().to_string_lossy().to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_secrets_are_known_by_name() {
        for path in [
            "/w/.env",
            "/w/.env.production",
            "/w/deploy/prod.env",
            "/w/certs/server.pem",
            "/home/a/.ssh/config",
            "/home/a/.aws/credentials",
            "/w/config/Secrets.yml",
            "/w/ID_RSA",
            "/proc/self/environ",
        ] {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        for path in ["/w/.env.example", "/w/src/key.rs", "/w/id_rsa.pub", "/w/README.md", "/w/environment.ts"]
        {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_look_into_a_file_spares_what_holds_no_key() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, holds) in [
            (".env", "A=1", true),
            ("server.pem", "-----BEGIN PRIVATE KEY-----", true),
            ("cacert.pem", "-----BEGIN CERTIFICATE-----", false),
            (".npmrc", "save-exact=true\nregistry=https://packages.example.com/", false),
            (".npmrc", "//registry.npmjs.org/:_authToken=${NPM_TOKEN}", false),
            (".npmrc", "//registry.npmjs.org/:_authToken=npm_x", true),
            (".npmrc", "registry=https://me:word@packages.example.com/", true),
            ("secrets.rs", "pub fn read() {}", false),
            ("secrets.yml", "password: x", true),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert_eq!(holds_secrets(&path), holds, "{name}: {text}");
        }
    }
}
