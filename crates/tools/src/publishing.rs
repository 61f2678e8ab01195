//! Commands that publish packages or change an account at a package registry: they send something out, whatever the
//! sandbox allows, and they need the user's credentials.

/// Programs and the subcommands that do so. An empty one is the program without a subcommand.
const PUBLISH: &[(&[&str], &[&str])] = &[
    (
        &["npm", "pnpm", "yarn", "bun"],
        &[
            "access",
            "adduser",
            "deprecate",
            "dist-tag",
            "dist-tags",
            "hook",
            "login",
            "org",
            "owner",
            "profile",
            "publish",
            "stage",
            "star",
            "team",
            "token",
            "trust",
            "undeprecate",
            "unpublish",
            "unstar",
        ],
    ),
    (&["cargo"], &["login", "owner", "publish", "release", "yank"]),
    (&["twine"], &["register", "upload"]),
    (&["uv", "poetry", "pdm", "flit", "hatch", "maturin", "rye", "jsr", "deno"], &["publish", "upload"]),
    (&["gem"], &["owner", "push", "signin", "yank"]),
    (&["mix"], &["hex.owner", "hex.publish", "hex.retire", "hex.user"]),
    (&["dart", "flutter"], &["publish"]),
    (&["nuget"], &["delete", "push", "setapikey"]),
    (&["mvn", "mvnw"], &["deploy", "release:perform", "nexus-staging:release"]),
    (
        &["gradle", "gradlew"],
        &["closeandreleaserepository", "publish", "publishtomavencentral", "uploadarchives"],
    ),
    (&["lerna", "changeset", "changesets", "nx", "auto", "vsce", "ovsx"], &["publish", "release"]),
    (&["semantic-release", "release-it", "np", "goreleaser", "release-plz"], &[""]),
    (&["conda", "anaconda", "luarocks"], &["upload"]),
    (&["pod"], &["repo", "trunk"]),
    (&["docker", "podman", "helm", "oras", "skopeo"], &["copy", "push"]),
];

/// Programs that run another program by its name.
const RUNNERS: &[&str] = &["npx", "bunx", "pnpx", "uvx", "pipx", "dlx", "exec", "x", "run", "tool"];

/// Whether a command publishes, by its words.
pub(crate) fn publishes(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let program = program.rsplit('/').next().unwrap_or_default();
    let named: Vec<&str> = arguments.iter().filter(|word| !word.starts_with(['-', '+'])).copied().collect();
    if program.starts_with("python") && arguments.first() == Some(&"-m") {
        return publishes(&arguments[1..]);
    }
    // `yarn npm publish`, `dotnet nuget push`, `npx np`, `uv tool run twine upload`.
    let inner = match named.split_first() {
        Some(_) if RUNNERS.contains(&program) || program == "dotnet" => &named[..],
        Some((first, rest)) if RUNNERS.contains(first) => rest,
        Some((&("npm" | "nuget"), _)) => &named[..],
        Some((&"pub", rest)) if ["dart", "flutter"].contains(&program) => {
            return rest.first() == Some(&"publish");
        }
        _ => &[],
    };
    if publishes(inner) {
        return true;
    }
    let is_listed = |subcommands: &[&str]| {
        let is_one = |word: &&str| subcommands.contains(&word.to_ascii_lowercase().as_str());
        match program {
            // Any of several tasks may be the one.
            "mvn" | "mvnw" | "gradle" | "gradlew" => named.iter().any(is_one),
            _ => named.first().map_or(subcommands.contains(&""), is_one) || subcommands == [""],
        }
    };
    PUBLISH.iter().any(|(programs, subcommands)| programs.contains(&program) && is_listed(subcommands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sends_packages_out_is_known() {
        for line in [
            "npm publish",
            "npm publish --access public",
            "pnpm publish -r",
            "yarn npm publish",
            "bun publish",
            "npm unpublish x",
            "npm token create",
            "cargo publish -p a",
            "cargo yank a",
            "twine upload dist/a.whl",
            "python3 -m twine upload dist/a.whl",
            "uv publish",
            "uvx twine upload dist/a",
            "poetry publish --build",
            "gem push a.gem",
            "mix hex.publish",
            "dart pub publish",
            "dotnet nuget push a.nupkg",
            "mvn clean deploy",
            "./gradlew publish",
            "npx semantic-release",
            "npx lerna publish",
            "docker push a",
        ] {
            assert!(publishes(&line.split(' ').collect::<Vec<_>>()), "{line}");
        }
        for line in [
            "npm test",
            "npm install",
            "npm run build",
            "cargo build",
            "cargo test publish",
            "uv sync",
            "mvn test",
            "./gradlew test",
            "git push",
            "make publish-docs",
            "docker build .",
            "python3 x.py",
            "nx build",
        ] {
            assert!(!publishes(&line.split(' ').collect::<Vec<_>>()), "{line}");
        }
    }
}
