//! Runs flows of a page in a real browser, each with a home of its own.
//!
//! Needs what `make` fetches and builds under `target/web`, and Chromium. Without them a test says so and passes, unless
//! `DRAGOMAN_BROWSER` is set (as `make test` does): then they are required.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The tests of one page.
pub(crate) struct Flows {
    /// The folder of the driver, in the repository.
    pub(crate) folder: &'static str,
    /// A file of the page below `target/web`.
    pub(crate) page: &'static str,
}

impl Flows {
    /// Runs one flow. Pictures of a failure stay in the folder.
    pub(crate) fn run(&self, flow: &str) {
        if !self.is_present() {
            return;
        }
        let tests = repository().join(self.folder);
        let name = tests.file_name().expect("a folder with a name");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).join(flow);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new("node");
        command.arg(tests.join("driver.mjs")).arg(flow);
        command.arg(env!("CARGO_BIN_EXE_dragoman")).arg(web()).arg(&folder);
        let output = command.env("CHROMIUM", browser()).output().expect("node starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn is_present(&self) -> bool {
        let (page, browser) = (web().join(self.page), browser());
        if page.exists() && browser.exists() {
            return true;
        }
        let missing = format!("{} or {} is missing; run `make`", page.display(), browser.display());
        assert!(std::env::var_os("DRAGOMAN_BROWSER").is_none(), "{missing}");
        testkit::skip(missing);
        false
    }
}

fn web() -> PathBuf {
    std::env::var_os("DRAGOMAN_WEB").map_or_else(|| repository().join("target/web"), PathBuf::from)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn browser() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from)
}
