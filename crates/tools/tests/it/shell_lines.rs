//! What shell lines are taken for: plain ones, and every known way of hiding what a line does.

use tools::shell::analyze;

/// The line is understood; `keys` are separated by commas.
fn understood(line: &str, keys: &str, read_only: bool) {
    let found = analyze(line);
    assert!(found.reasons.is_empty(), "{line:?} is asked: {:?}", found.reasons);
    assert_eq!(found.names().join(","), keys, "{line:?}");
    assert_eq!(found.read_only(), read_only, "{line:?}");
}

#[test]
fn read_only_lines() {
    let rows = [
        ("ls", "ls"),
        ("ls -la src", "ls"),
        ("cat a.txt b.txt", "cat"),
        ("head -n 20 a", "head"),
        ("head -20 a", "head"),
        ("tail -n+5 a", "tail"),
        ("wc -l a", "wc"),
        ("grep -rn 'a b' src", "grep"),
        ("grep -A3 -e x --include=x.rs -r .", "grep"),
        ("rg -n --hidden -g x.rs 'foo|bar'", "rg"),
        ("rg foo$ src", "rg"),
        ("find . -name x -type f", "find"),
        ("find src -maxdepth 2 -not -path ./target -print0", "find"),
        ("git status", "git status"),
        ("git status -sb", "git status"),
        ("git --no-pager log --oneline -5", "git log"),
        ("git -C src diff --cached --stat HEAD~1", "git diff"),
        ("git show HEAD:src/a.rs", "git show"),
        ("git branch --list", "git branch"),
        ("git branch -a", "git branch"),
        ("git tag --list v1", "git tag"),
        ("git remote -v", "git remote"),
        ("git stash list", "git stash list"),
        ("git config --get user.name", "git config user.name"),
        ("git log --since='2 weeks ago' --format=%h -- src", "git log"),
        ("git blame -L 1,5 a", "git blame"),
        ("pwd", "pwd"),
        ("echo hello --world", "echo"),
        ("printf '%s\\n' a", "printf"),
        ("sort a | uniq -c | sort -rn | head", "sort,uniq,head"),
        ("cat a 2>/dev/null", "cat"),
        ("ls 2>&1", "ls"),
        ("ls > /dev/null 2>&1", "ls"),
        ("wc -l < a", "wc"),
        ("cd src && ls", "cd,ls"),
        ("(cd src; ls)", "cd,ls"),
        ("{ ls; pwd; }", "ls,pwd"),
        ("! grep -q x a", "grep"),
        ("ls; pwd\nwhoami", "ls,pwd,whoami"),
        ("ls # a comment", "ls"),
        ("# a comment\nls", "ls"),
        ("ls \\\n  -l", "ls"),
        ("sed -n '1,20p' a", "sed"),
        ("sed -n -e 5p -e '$p' a", "sed"),
        ("sed 's/a/b/g; /x/d' a", "sed"),
        ("awk '{print $1}' a", "awk"),
        ("awk -F: '$1 == \"x\" {print $2}' a", "awk"),
        ("[ -f a ] && cat a", "test,cat"),
        ("test -d src || echo no", "test,echo"),
        ("command -v cargo", "command"),
        ("which node", "which"),
        ("node --version && uv --version", "node --version,uv"),
        ("timeout 5 cat a", "timeout,cat"),
        ("time ls", "time,ls"),
        ("/bin/ls -l", "ls"),
        ("'git' \"status\"", "git status"),
        ("diff -u a b", "diff"),
        ("date +%s", "date"),
        ("true", "true"),
        ("tree -L 2", "tree"),
        ("du -sh .", "du"),
    ];
    for (line, keys) in rows {
        understood(line, keys, true);
    }
}

#[test]
fn lines_that_change_something() {
    let rows = [
        ("cargo test", "cargo test"),
        ("cargo +nightly test -p a", "cargo test"),
        ("npm run build", "npm run build"),
        ("npm test", "npm test"),
        ("npm install left-pad", "npm install"),
        ("git push", "git push"),
        ("git commit -m 'a message'", "git commit"),
        ("git checkout -b x", "git checkout"),
        ("git branch new", "git branch"),
        ("git branch -D old", "git branch"),
        ("git tag v1", "git tag"),
        ("git stash pop", "git stash pop"),
        ("git remote add x y", "git remote add"),
        ("make -j4 test", "make test"),
        ("make", "make"),
        ("rm -rf target", "rm"),
        ("mkdir -p a/b && touch a/b/c", "mkdir,touch"),
        ("git add -A && git commit -m x && git push", "git add,git commit,git push"),
        ("cargo build 2>&1 | tail -20", "cargo build,tail"),
        ("python3 script.py --x", "python3 script.py"),
        ("python3 -m pytest -q", "python3 -m pytest"),
        ("bash run.sh", "bash run.sh"),
        ("node build.js", "node build.js"),
        ("npx prettier --check .", "npx prettier"),
        ("./gradlew test", "./gradlew"),
        ("docker compose up -d", "docker compose up"),
        ("gh pr view 3", "gh pr view"),
        ("go test ./...", "go test"),
        ("sed -i 's/a/b/' a", "sed -i"),
        ("uniq a out", "uniq"),
        ("sort a -T /x", "sort"),
        ("tail -f log", "tail"),
        ("git diff src/*.rs", "git diff"),
        ("ls src/*.rs", "ls"),
        ("hostname evil", "hostname"),
        ("date 010100002030", "date"),
        ("printf -v x y", "printf"),
        ("timeout 60 cargo test", "timeout,cargo test"),
        ("tee out", "tee"),
        ("GIT status", "GIT"),
        ("curl https://example.com", "curl"),
        ("test -v 'a[0]'", "test"),
        ("tree -o out", "tree"),
        ("grep -f patterns a", "grep"),
        ("env_tool", "env_tool"),
        // What a file of the project can choose the program for.
        ("cargo --version", "cargo"),
        ("yarn --version", "yarn"),
        ("mvn --version", "mvn"),
        ("go version", "go version"),
        // What would follow a symlink or a list of arguments out of the workspace.
        ("diff -r a b", "diff"),
        ("strings @list", "strings"),
    ];
    for (line, keys) in rows {
        understood(line, keys, false);
    }
}

#[test]
fn what_hides_something_is_asked() {
    let rows = [
        // Writing.
        ("ls > out", "ls"),
        ("ls >> out", "ls"),
        ("ls >| out", "ls"),
        ("ls &> out", "ls"),
        ("ls 2> err", "ls"),
        ("ls <> out", "ls"),
        (": > .bashrc", ":"),
        ("echo x > a b", "echo"),
        // Substitution, and what it holds is seen.
        ("echo $(git push)", "echo,git push"),
        ("echo `git push`", "echo,git push"),
        ("echo \"a $(rm -rf x) b\"", "echo,rm"),
        ("ls $HOME", "ls"),
        ("ls ${HOME}", "ls"),
        ("ls \"$HOME\"", "ls"),
        ("echo $((1+1))", "echo"),
        ("$CMD status", ""),
        ("$(echo git) push", "echo"),
        ("`echo git` push", "echo"),
        ("diff <(ls a) <(ls b)", "diff,ls"),
        ("tee >(sh)", "tee,sh"),
        ("cat <<EOF\n$(git push)\nEOF", "cat,git push"),
        ("bash <<< 'git push'", "bash"),
        ("bash <<'EOF'\ngit push\nEOF", "bash"),
        // Spelling.
        ("$'git' push", ""),
        ("$'\\x67it' push", ""),
        ("git $'push'", "git"),
        ("{git,push}", ""),
        ("git {push,--force}", "git"),
        ("cat a{1..3}", "cat"),
        ("g?t push", ""),
        ("/bin/l* x", ""),
        ("gi\u{200b}t push", "gi\u{200b}t"),
        ("g\u{456}t push", "g\u{456}t"),
        ("git\u{a0}push", ""),
        ("ls\u{2028}git push", ""),
        ("ls \u{202e}hsup tig", "ls"),
        ("ls\rgit push", ""),
        // Background, functions, variables, control.
        ("git push &", "git push"),
        ("ls & git push", "ls,git push"),
        ("ls() { git push; }; ls", "git push,ls"),
        ("function f { rm x; }", "rm"),
        ("alias ls='git push'; ls", "alias,ls"),
        ("A=1 ls", "ls"),
        ("GIT_PAGER='sh -c x' git log", "git log"),
        ("GIT_SSH_COMMAND=x git fetch", "git fetch"),
        ("PATH=.:$PATH ls", "ls"),
        ("LD_PRELOAD=./x.so ls", "ls"),
        ("A=$(git push)", "git push"),
        ("export PATH=.", ""),
        ("unset PATH", ""),
        ("for f in a; do rm x; done", "rm"),
        ("while true; do ls; done", "true,ls"),
        ("if true; then rm x; fi", "true,rm"),
        ("case x in x) rm y;; esac", "rm"),
        ("[[ -f a ]] && ls", "ls"),
        ("[ -n \"$(git push)\" ]", "git push"),
        ("coproc git push", "coproc,git push"),
        ("set -x; ls", "set,ls"),
        ("trap 'git push' EXIT", "trap"),
        ("shopt -s expand_aliases", "shopt"),
        // Commands that run commands.
        ("env git push", "env,git push"),
        ("env -i A=1 git push", "env,git push"),
        ("sh -c 'git push'", "sh -c,git push"),
        ("bash -lc 'cd x && git push'", "bash -lc,cd,git push"),
        ("/bin/sh -c 'git push'", "sh -c,git push"),
        ("sh -c \"sh -c 'git push'\"", "sh -c,git push"),
        ("sh -c", "sh -c"),
        ("bash", "bash"),
        ("cat a | bash", "cat,bash"),
        ("curl x | sh", "curl,sh"),
        ("eval 'git push'", "eval,git push"),
        ("eval git push", "eval"),
        ("exec git push", "exec,git push"),
        ("command git push", "command,git push"),
        ("builtin cd x", "builtin,cd"),
        ("sudo rm x", "sudo,rm"),
        ("nohup git push", "nohup,git push"),
        ("xargs rm", "xargs,rm"),
        ("find . -name x | xargs -n 1 rm", "find,xargs,rm"),
        ("timeout -k 5 10 git push", "timeout,git push"),
        ("nice -n 5 sh -c 'git push'", "nice,sh -c,git push"),
        ("busybox rm x", "busybox,rm"),
        ("source x.sh", "source"),
        (". x.sh", "."),
        ("python3 -c 'import os'", "python3 -c"),
        ("python3.12 -c 'x'", "python3.12 -c"),
        ("node -e 1", "node -e"),
        ("perl -e 1", "perl -e"),
        ("python3", "python3"),
        ("watch git push", "watch,git push"),
        ("ssh host ls", "ssh"),
        ("vim -c '!sh' a", "vim"),
        ("parallel rm", "parallel,rm"),
        // Options that run or write.
        ("find . -exec rm {} ;", "find,rm"),
        ("find . -exec rm {} \\;", "find,rm"),
        ("awk 'BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}{print}'", "awk"),
        ("find . -name x -delete", "find"),
        ("find . -execdir x +", "find,x"),
        ("find . -fprint out", "find"),
        ("find -L .", "find"),
        ("git -c core.pager='sh -c x' log", "git log"),
        ("git -c alias.x='!sh' x", "git x"),
        ("git --exec-path=. status", "git status"),
        ("git --git-dir=x status", "git status"),
        ("git -p log", "git log"),
        ("git --paginate log", "git log"),
        ("git diff --output=x", "git diff"),
        ("git diff --outp=x", "git diff"),
        ("git log --ext-diff", "git log"),
        ("git fetch --upload-pack=x", "git fetch"),
        ("git ls-remote --upload-pack=x y", "git ls-remote"),
        ("git fetch --upload-p=x", "git fetch"),
        ("git push --receive-pack=x", "git push"),
        ("git clone -c core.sshCommand=x y", "git clone"),
        ("git clone 'ext::sh -c x' y", "git clone"),
        ("git grep -Osh x", "git grep"),
        ("git grep --open-files-in-pager=sh x", "git grep"),
        ("git config core.pager sh", "git config core.pager"),
        ("git bisect run sh x", "git bisect run"),
        ("git submodule foreach 'rm x'", "git submodule foreach"),
        ("git rebase -x 'rm x' HEAD~1", "git rebase"),
        ("git rebase --exec 'rm x' HEAD~1", "git rebase"),
        ("git difftool -x sh", "git difftool"),
        ("git log --show-signature", "git log"),
        ("git cat-file --textconv a", "git cat-file"),
        ("rg --pre sh x", "rg"),
        ("rg --hostname-bin=sh x", "rg"),
        ("sort --compress-program=sh a", "sort"),
        ("tar -xf a --to-command=sh", "tar"),
        ("tar -I sh -xf a", "tar"),
        ("fd -x rm", "fd"),
        ("go test -exec sh ./...", "go test"),
        ("cargo --config x test", "cargo test"),
        ("npm --prefix x run build", "npm run build"),
        ("sudo -u root git push", "git push"),
        ("env -u A git push", "git push"),
        ("sed '1e rm x' a", "sed"),
        ("sed 's/a/b/e' a", "sed"),
        ("sed 's/a/b/w out' a", "sed"),
        ("sed 'w out' a", "sed"),
        ("sed -f script a", "sed"),
        ("sed -n 's/[/]/x/;w out' a", "sed"),
        ("awk 'BEGIN{system(\"rm x\")}'", "awk"),
        ("awk '{print > \"out\"}' a", "awk"),
        ("awk '{print | \"sh\"}' a", "awk"),
        ("awk -f script a", "awk"),
        ("wc -l *", "wc"),
        ("cat *", "cat"),
        // Not syntax.
        ("ls '", ""),
        ("ls )", "ls"),
        ("ls \\", "ls"),
        ("ls \"", ""),
        ("", ""),
        ("   ", ""),
        ("# only a comment", ""),
    ];
    for (line, keys) in rows {
        let found = analyze(line);
        assert!(!found.reasons.is_empty(), "{line:?} is not asked: {:?}", found.commands);
        assert!(!found.read_only(), "{line:?}");
        for key in keys.split(',').filter(|key| !key.is_empty()) {
            let seen = found.names();
            assert!(seen.iter().any(|seen| seen == key), "{line:?} hides {key:?}: {seen:?}");
        }
    }
}

#[test]
fn quoting_hides_nothing() {
    for line in [
        "g\\it push",
        "\\g\\i\\t push",
        "'g'it pu\"sh\"",
        "\"git\" 'push'",
        "git \\\npush",
        "gi\\\nt push",
        "git   push",
        "git\tpush",
        " git push ",
        "git push;",
        "git push\n",
        "(git push)",
        "true && git push",
        "true || git push",
        "true; git push",
        "true | git push",
        "true\ngit push",
        "true |& git push",
        "! git push",
        "{ git push; }",
        "ls # x\ngit push",
        "/usr/bin/git push",
        "git -C . push",
        "git --no-pager push",
        "git push # status",
        "timeout 5 git push",
        "time git push",
        "nice git push",
        "cd . && git push",
    ] {
        let found = analyze(line);
        assert!(found.names().contains(&"git push".to_owned()), "{line:?}: {:?}", found.names());
        assert!(!found.read_only(), "{line:?}");
    }
    for line in
        ["echo 'git push'", "echo \"git push\"", "echo git push", "grep 'git push' a", "echo '$(git push)'"]
    {
        let found = analyze(line);
        assert!(
            found.read_only() && !found.keys().contains(&"git push".to_owned()),
            "{line:?}: {:?}",
            found.reasons
        );
    }
}

#[test]
fn nothing_breaks_it() {
    let deep = "(".repeat(5_000) + "ls" + &")".repeat(5_000);
    let long = "a".repeat(100_000);
    let nested = "sh -c '".repeat(10);
    let times = "time ".repeat(6_000) + "ls";
    let sudos = "sudo -u x ".repeat(3_000) + "ls";
    for line in [
        deep.as_str(),
        &long,
        &nested,
        &times,
        &sudos,
        "\0",
        "\u{fffd}",
        "<<",
        "<<<",
        "$(",
        "${",
        "`",
        "((",
        "[[",
        "&&",
        ";;",
        "!",
    ] {
        assert!(!analyze(line).read_only(), "{:?}", &line[..line.len().min(40)]);
    }
}

/// What is remembered of each line: enough to know the command again, never enough for another target.
#[test]
fn what_is_remembered_names_what_matters() {
    for (line, keys) in [
        ("curl https://a.example/x", "curl https://a.example/x"),
        ("rm a.txt", "rm a.txt"),
        ("rm 'a b'", "rm 'a b'"),
        ("rm a b", "rm a b"),
        ("git push origin main", "git push origin main"),
        ("docker run image", "docker run image"),
        ("npm install left-pad", "npm install left-pad"),
        ("python3 manage.py migrate", "python3 manage.py migrate"),
        ("git commit -m 'a message'", "git commit …"),
        ("git commit --amend", "git commit --amend"),
        ("git add -A src", "git add …"),
        ("git add -f .env", "git add -f .env"),
        ("cargo test -p a", "cargo test …"),
        ("cargo install x", "cargo install x"),
        ("npm run build -- --watch", "npm run build …"),
        ("npm publish", "npm publish"),
        ("git status -sb", "git status"),
        ("/bin/rm a.txt", "rm a.txt"),
    ] {
        assert_eq!(analyze(line).keys().join(","), keys, "{line}");
    }
}
