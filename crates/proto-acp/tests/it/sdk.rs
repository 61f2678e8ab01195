//! The official client package, as its lock file names it, installed once beside the build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the package `@agentclientprotocol/sdk` is. Nothing is fetched when the lock file has not changed.
pub(crate) fn package() -> PathBuf {
    home().join("node_modules/@agentclientprotocol/sdk")
}

/// A folder with the packages in its `node_modules`.
pub(crate) fn home() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto-acp/tests/sdk");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("acp-sdk");
    fs::create_dir_all(&home).unwrap();
    // Tests run in processes of their own at the same time.
    let guard = File::create(home.join("guard")).unwrap();
    guard.lock().unwrap();
    let wanted = fs::read_to_string(source.join("package-lock.json")).unwrap();
    let stamp = home.join("installed.lock.json");
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        for name in ["package.json", "package-lock.json"] {
            fs::copy(source.join(name), home.join(name)).unwrap();
        }
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        let installed = Command::new("npm").args(arguments).current_dir(&home).output();
        let installed =
            installed.expect("these tests need npm (Node.js 20 or newer); install it and try again");
        assert!(installed.status.success(), "npm ci: {}", String::from_utf8_lossy(&installed.stderr));
        fs::write(&stamp, wanted).unwrap();
    }
    home
}
