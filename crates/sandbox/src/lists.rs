//! The lists behind a policy, as data: secrets, files that run later, caches. Paths start from home unless they are
//! absolute. It decides nothing.

/// Folders and files that no command may read.
pub(crate) const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".1password",
    ".config/1Password",
    ".config/op",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    // files with passwords and tokens
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/rclone",
    ".config/github-copilot",
    ".config/configstore",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini",
    ".config/eca",
    // what was typed
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".lesshst",
    ".viminfo",
    // browsers, mail and messages
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".cache/mozilla",
    ".cache/google-chrome",
    ".cache/chromium",
    "snap/firefox",
    "snap/chromium",
    ".var/app",
    ".config/Slack",
    ".config/discord",
    ".config/Signal",
    ".local/share/TelegramDesktop",
    // keys of the machine
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/var/spool/cron",
];

/// Those of the list above that the grant `git-credentials` shows.
pub(crate) const GIT_CREDENTIALS: &[&str] = &[
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
];

/// Secrets that the grant `cloud` shows.
pub(crate) const CLOUD: &[&str] = &[
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".oci",
    ".fly",
    ".config/doctl",
    ".config/hcloud",
    ".config/scw",
    ".config/heroku",
];

/// Secrets that the grant `containers` shows.
pub(crate) const CONTAINERS: &[&str] =
    &[".docker", ".config/containers", ".local/share/containers/auth.json"];

/// Sockets of container engines.
pub(crate) const CONTAINER_SOCKETS: &[&str] = &["/run/docker.sock", "/run/podman/podman.sock"];

/// Endings of files in home that hold keys.
pub(crate) const KEY_ENDINGS: &[&str] =
    &[".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".ppk"];

/// Files of `~/.ssh` that the grant `ssh` shows.
pub(crate) const SSH_SHOWN: &[&str] = &["known_hosts", "known_hosts2", "config", "config.d"];

/// Files of `~/.gnupg` that the grant `signing` shows.
pub(crate) const GNUPG_SHOWN: &[&str] = &[
    "pubring.kbx",
    "pubring.gpg",
    "public-keys.d",
    "trustdb.gpg",
    "gpg.conf",
    "common.conf",
    "gpg-agent.conf",
    "S.gpg-agent",
];

/// Files of the user that run later: read-only also where home itself is the workspace.
pub(crate) const RUN_LATER: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".config/fish",
    ".inputrc",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsessionrc",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".local/bin",
    ".local/share/applications",
    "bin",
    ".gitconfig",
    ".config/git",
    ".npmrc",
    ".yarnrc",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".config/pip",
    ".pip",
    ".vimrc",
    ".vim",
    ".config/nvim",
    ".emacs",
    ".emacs.d",
    ".config/emacs",
    ".config/Code/User",
    ".config/zed",
    ".tmux.conf",
];

/// In each workspace folder: hooks that the user's own git runs later, and our own configuration.
pub(crate) const PROJECT_PROTECTED: &[&str] = &[".husky", ".githooks", ".dragoman", ".eca"];

/// A folder of downloads, below home, and the variable that moves it where the folder does not exist yet.
pub(crate) const CACHES: &[(&str, Option<&str>)] = &[
    (".npm", Some("npm_config_cache")),
    (".cache/pip", Some("PIP_CACHE_DIR")),
    (".cache/uv", Some("UV_CACHE_DIR")),
    (".cache/yarn", Some("YARN_CACHE_FOLDER")),
    (".cache/go-build", Some("GOCACHE")),
    ("go/pkg/mod", Some("GOMODCACHE")),
    (".cache/pypoetry", Some("POETRY_CACHE_DIR")),
    (".nuget/packages", Some("NUGET_PACKAGES")),
    (".bun/install/cache", Some("BUN_INSTALL_CACHE_DIR")),
    (".cache/deno", Some("DENO_DIR")),
    (".cache/node/corepack", Some("COREPACK_HOME")),
    (".cache/pnpm", None),
    (".local/share/pnpm/store", None),
    (".yarn/berry", None),
    (".gradle/caches", None),
    (".gradle/wrapper/dists", None),
    (".m2/repository", None),
    (".cache/ms-playwright", None),
    (".cache/puppeteer", None),
    (".cache/node-gyp", None),
    (".cache/ccache", None),
    (".cache/sccache", None),
    (".cache/pre-commit", None),
    (".cache/composer", None),
    (".pub-cache", None),
];

/// Caches without which a build does not work, with the variables that lead to them.
pub(crate) const STRICT_CACHES: &[(&str, &str)] = &[
    ("go-build", "GOCACHE"),
    ("npm", "npm_config_cache"),
    ("ruff", "RUFF_CACHE_DIR"),
    ("mypy", "MYPY_CACHE_DIR"),
    ("ccache", "CCACHE_DIR"),
];

/// Below cargo's folder, which has its programs and its configuration beside them.
pub(crate) const CARGO_CACHES: &[&str] =
    &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"];

/// Folders that the wall makes anew.
pub(crate) const REPLACED: &[&str] = &["/run", "/tmp", "/var/tmp"];
