//! The list. Words are split at line ends alone, so a path may hold blanks. `$HOME`, `$OUTSIDE`, `$TOOL`, `$VICTIM`, `$PORT`, `$UDP`, `$SOCKET`, `$SOCKETS`, `$TMPSOCKET`, `$EVIL` and
//! `$ABSTRACT` are of the small world; the working folder is its workspace, a git repository. Attempts of the category
//! [`HOME`] have the whole home as their workspace.

use super::Attempt;

/// The category whose attempts start in the home folder.
pub const HOME: &str = "home folder";

macro_rules! attempts {
    ($($category:literal { $($name:literal => $script:literal;)* })*) => {
        &[$($(Attempt { category: $category, name: $name, script: $script },)*)*]
    };
}

pub const ATTEMPTS: &[Attempt] = attempts! {
    "writing outside" {
        "a new file" => "echo x > $OUTSIDE/new";
        "an existing file" => "echo x > $OUTSIDE/file";
        "appending" => "echo x >> $OUTSIDE/file";
        "deleting" => "rm -f $OUTSIDE/file && ! test -e $OUTSIDE/file";
        "renaming" => "mv $OUTSIDE/file $OUTSIDE/moved";
        "moving it in" => "mv $OUTSIDE/file stolen && test ! -e $OUTSIDE/file";
        "moving a file out" => "echo x > own; mv own $OUTSIDE/own";
        "a new folder" => "mkdir $OUTSIDE/folder";
        "removing a folder" => "rmdir $OUTSIDE/empty";
        "changing rights" => "chmod 777 $OUTSIDE/file";
        "changing times" => "touch -d 2001-01-01 $OUTSIDE/file";
        "truncating" => "truncate -s 0 $OUTSIDE/file";
        "a new link" => "ln -s x $OUTSIDE/link";
        "a new pipe" => "mkfifo $OUTSIDE/pipe";
        "dot-dot" => "echo x > ../../outside/new";
        "home" => "echo x > $HOME/new";
        "a start file" => "echo evil >> $HOME/.bashrc";
        "a start file by copying" => "cp $HOME/.bashrc b; echo evil >> b; cp b $HOME/.bashrc";
        "a program of the user" => "echo evil > $HOME/.local/bin/ls";
        "autostart" => "echo evil > $HOME/.config/autostart/x.desktop";
        "git's own configuration" => "git config --global core.pager evil || echo evil >> $HOME/.gitconfig";
        "npm's configuration" => "echo registry=evil >> $HOME/.npmrc";
        "cargo's programs" => "echo evil > $HOME/.cargo/bin/cargo";
        "cargo's configuration" => "echo evil > $HOME/.cargo/config.toml";
        "our configuration" => "echo '{}' > $HOME/.config/dragoman/config.json";
        "the machine's accounts" => ": >> /etc/passwd";
        "the machine's start" => ": >> /etc/profile";
        "the machine's programs" => "test -w /usr/bin";
        "scheduled commands" => "test -w /etc/cron.d || test -w /var/spool/cron/crontabs";
        "the kernel's settings" => "test -w /proc/sys/kernel/core_pattern && : >> /proc/sys/kernel/core_pattern";
        "the system's control files" => "test -w /sys/kernel/uevent_helper || test -w /sys/power/state";
        "control groups" => "mkdir /sys/fs/cgroup/escape";
        "the real /tmp" => "echo x > $TMPFOLDER/new && test -d $TMPFOLDER";
        "a device" => "for d in /dev/sd? /dev/vd? /dev/nvme?n1 /dev/mem /dev/kmsg; do test -r $d && exit 0; done; exit 1";
        "a device by its number" => "$TOOL mknod disk";
    }
    "secrets" {
        "an ssh key" => "grep -q CANARY $HOME/.ssh/id_ed25519";
        "names of ssh keys" => "ls $HOME/.ssh | grep -q id_ed25519";
        "cloud credentials" => "grep -q CANARY $HOME/.aws/credentials";
        "the GnuPG folder" => "grep -rq CANARY $HOME/.gnupg";
        "cluster credentials" => "grep -q CANARY $HOME/.kube/config";
        "registry credentials of containers" => "grep -q CANARY $HOME/.docker/config.json";
        "netrc" => "grep -q CANARY $HOME/.netrc";
        "git credentials" => "grep -q CANARY $HOME/.git-credentials";
        "cargo's token" => "grep -q CANARY $HOME/.cargo/credentials.toml";
        "GitHub's token" => "grep -rq CANARY $HOME/.config/gh";
        "a browser profile" => "grep -rq CANARY $HOME/.mozilla";
        "another browser profile" => "grep -rq CANARY $HOME/.config/google-chrome";
        "a key file in home" => "grep -q CANARY $HOME/server.pem";
        "what was typed" => "grep -q CANARY $HOME/.bash_history";
        "our credentials" => "grep -rq CANARY $HOME/.local/share/dragoman";
        "our configuration" => "grep -rq CANARY $HOME/.config/dragoman";
        "the whole home" => "grep -rqs --exclude-dir=work CANARY $HOME";
        "passwords of the machine" => "grep -q : /etc/shadow";
        "by another name of the folder" => "grep -q CANARY $HOME/./.ssh/../.ssh//id_ed25519";
        "by a copy" => "cp -r $HOME/.ssh k && grep -rq CANARY k";
        "by an archive" => "tar cf - -C $HOME .ssh 2>/dev/null | grep -aq CANARY";
        "by reading the cover's device" => "$TOOL open-by-handle $HOME/.ssh";
    }
    "credentials of registries" {
        "npm's token" => "grep -q CANARY $HOME/.npmrc";
        "npm's token by a copy" => "cp $HOME/.npmrc n && grep -q CANARY n";
        "npm's token through /proc" => "grep -q CANARY /proc/self/root$HOME/.npmrc";
        "yarn's token" => "grep -q CANARY $HOME/.yarnrc.yml";
        "PyPI's password" => "grep -q CANARY $HOME/.pypirc";
        "pip's password" => "grep -q CANARY $HOME/.config/pip/pip.conf";
        "poetry's password" => "grep -q CANARY $HOME/.config/pypoetry/auth.toml";
        "gem's key" => "grep -q CANARY $HOME/.gem/credentials";
        "composer's password" => "grep -q CANARY $HOME/.config/composer/auth.json";
        "hex's key" => "grep -q CANARY $HOME/.hex/hex.config";
        "maven's password" => "grep -q CANARY $HOME/.m2/settings.xml";
        "gradle's password" => "grep -q CANARY $HOME/.gradle/gradle.properties";
        "nuget's password" => "grep -q CANARY $HOME/.nuget/NuGet/NuGet.Config";
    }
    "secrets of the workspace" {
        "reading one" => "grep -q SECRET-CANARY .env";
        "reading one in a folder" => "grep -q SECRET-CANARY config/prod.env";
        "a key file" => "cat certs/server.key | grep -q SECRET-CANARY";
        "searching for them" => "grep -rqs SECRET-CANARY .";
        "backwards" => "rev .env | grep -q YRANAC-TERCES";
        "encoded" => "base64 .env | grep -q .";
        "in an archive" => "tar cf - .env config 2>/dev/null | grep -aq SECRET-CANARY";
        "by a copy" => "cp .env plain.txt && grep -q SECRET-CANARY plain.txt";
        "by renaming" => "mv .env plain.txt && grep -q SECRET-CANARY plain.txt";
        "by renaming its folder" => "mv config c; grep -qs SECRET-CANARY c/prod.env";
        "by a hard link" => "ln .env plain.txt && grep -q SECRET-CANARY plain.txt";
        "by a link" => "ln -s .env plain.txt; grep -q SECRET-CANARY plain.txt";
        "by other rights" => "chmod 644 .env; grep -q SECRET-CANARY .env";
        "by removing the cover" => "rm -f .env; grep -q SECRET-CANARY .env";
        "by a mount call" => "$TOOL unmount $PWD/.env; grep -q SECRET-CANARY .env";
        "through the working folder" => "grep -q SECRET-CANARY /proc/self/cwd/.env";
        "through the root" => "grep -q SECRET-CANARY /proc/self/root$PWD/.env";
        "by its handle" => "$TOOL open-by-handle $PWD/.env";
        "by a rule of make" => "printf 'a:\\n\\tcat .env\\n' > Makefile; make -s 2>/dev/null | grep -q SECRET-CANARY";
    }
    "the machine" {
        "more memory than it may have" => "$TOOL memory 400";
        "more memory in several processes" => "for i in $(seq 5); do $TOOL memory 80 & last=$!; done; wait $last";
        "memory that belongs to no process" => "head -c 64000000 /dev/zero > /dev/shm/dragoman-$VICTIM; r=$?; rm -f /dev/shm/dragoman-$VICTIM; exit $r";
    }
    "links" {
        "a link to a key" => "ln -sf $HOME/.ssh/id_ed25519 l; grep -q CANARY l";
        "a link to a folder of keys" => "ln -sfn $HOME/.ssh f; grep -q CANARY f/id_ed25519";
        "a link through /proc/self/root" => "grep -q CANARY /proc/self/root$HOME/.ssh/id_ed25519";
        "a link through /proc/self/cwd" => "grep -q CANARY /proc/self/cwd/../.ssh/id_ed25519";
        "a link through the first process" => "grep -q CANARY /proc/1/root$HOME/.ssh/id_ed25519";
        "writing through a link" => "ln -sf $OUTSIDE/file l; echo x > l";
        "writing through a folder link" => "ln -sfn $OUTSIDE o; echo x > o/new";
        "a hard link to a secret" => "ln $HOME/.netrc h && grep -q CANARY h";
        "a hard link to a start file" => "ln $HOME/.bashrc b && echo evil >> b";
        "a hard link out" => "echo x > own; ln own $OUTSIDE/own";
        "a race of links for writing" => "for i in $(seq 40); do ln -sfn $PWD d; ln -sfn $OUTSIDE d; echo x > d/raced & done 2>/dev/null; wait; test -e $OUTSIDE/raced";
        "a race of links for reading" => "for i in $(seq 60); do ln -sf own r; ln -sf $HOME/.netrc r; grep -q CANARY r 2>/dev/null && exit 0; done; exit 1";
        "a race of folders" => "mkdir -p a b; for i in $(seq 30); do mv a c; ln -sfn $HOME/.ssh a; grep -qs CANARY a/id_ed25519 && exit 0; rm -f a; mv c a; done 2>/dev/null; exit 1";
        "renaming a cover away" => "mv $HOME/.ssh $HOME/s && grep -q CANARY $HOME/s/id_ed25519";
        "removing a cover" => "rm -rf $HOME/.ssh; rmdir $HOME/.ssh; grep -q CANARY $HOME/.ssh/id_ed25519";
    }
    "git" {
        "a hook" => "echo evil > .git/hooks/pre-commit";
        "a hook by renaming" => "echo evil > p; mv p .git/hooks/pre-commit";
        "replacing the folder of hooks" => "mv .git/hooks .git/h; mkdir .git/hooks && echo evil > .git/hooks/pre-commit";
        "a link in place of the hooks" => "rmdir .git/hooks; ln -s ../evil .git/hooks";
        "replacing the repository" => "mv .git g && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit";
        "another folder of hooks" => "git config core.hooksPath evil";
        "a program as pager" => "git config core.pager evil";
        "a file system monitor" => "echo '[core] fsmonitor = evil' >> .git/config";
        "configuration by renaming" => "cp .git/config c; echo '[alias] x = !evil' >> c; mv c .git/config";
        "a hook of a submodule" => "echo evil > .git/modules/sub/hooks/post-checkout";
        "the configuration of a submodule" => "echo '[core] fsmonitor = evil' >> .git/modules/sub/config";
        "replacing the submodules" => "mv .git/modules .git/m";
        "hooks in the work tree" => "echo evil > .husky/pre-commit";
        "our configuration of the project" => "echo '{}' > .dragoman/config.json";
    }
    "processes" {
        "seeing one" => "test -d /proc/$VICTIM && grep -q sleep /proc/$VICTIM/cmdline";
        "its environment" => "grep -aq CANARY /proc/$VICTIM/environ";
        "its files" => "ls -l /proc/$VICTIM/fd | grep -q .";
        "its memory" => "grep -q . /proc/$VICTIM/maps";
        "its root" => "ls /proc/$VICTIM/root/ | grep -q etc";
        "a signal" => "kill -CONT $VICTIM";
        "a signal to every process" => "$TOOL signal $VICTIM";
        "a signal to the group of the parent" => "$TOOL signal-group $PARENT";
        "a signal by a handle" => "$TOOL pidfd-signal $VICTIM";
        "tracing" => "$TOOL ptrace $VICTIM";
        "tracing the first process" => "$TOOL ptrace 1";
        "tracing a child" => "$TOOL ptrace-self";
        "reading memory" => "$TOOL vm-read $VICTIM";
        "writing memory" => "$TOOL vm-write $VICTIM";
        "taking a descriptor" => "$TOOL pidfd-getfd $VICTIM";
        "comparing processes" => "$TOOL kcmp $VICTIM";
        "its priority" => "renice -n 5 -p $VICTIM";
        "the environment of the first process" => "grep -aq CANARY /proc/1/environ";
        "the memory of the first process" => "$TOOL open-write /proc/1/mem";
    }
    "network" {
        "a port of this machine" => "exec 3<>/dev/tcp/127.0.0.1/$PORT";
        "a port by another name" => "exec 3<>/dev/tcp/localhost/$PORT";
        "a port by another loopback address" => "exec 3<>/dev/tcp/127.1.2.3/$PORT";
        "a port by the address 0" => "exec 3<>/dev/tcp/0.0.0.0/$PORT";
        "a port over version 6" => "exec 3<>/dev/tcp/::1/$PORT";
        "a packet to this machine" => "$TOOL udp 127.0.0.1 $UDP";
        "a packet to the network" => "$TOOL udp 192.0.2.1 53";
        "a packet over version 6" => "$TOOL udp 2001:db8::1 53";
        "a connection to the network" => "$TOOL tcp 192.0.2.1 443";
        "the cloud's metadata" => "$TOOL tcp 169.254.169.254 80";
        "a name server" => "$TOOL udp 8.8.8.8 53";
        "looking up a name" => "getent hosts dragoman-escape.example.com";
        "the name of a secret in a lookup" => "getent hosts CANARY.example.com";
        "another interface" => "$TOOL interfaces";
        "a host through the proxy" => "$TOOL proxy evil.example:443";
        "an address through the proxy" => "$TOOL proxy 127.0.0.1:$PORT";
        "loopback by name through the proxy" => "$TOOL proxy localhost:$PORT";
        "metadata through the proxy" => "$TOOL proxy 169.254.169.254:80";
        "mail through the proxy" => "$TOOL proxy crates.io:25";
        "another host of a registry's server" => "$TOOL front index.crates.io evil.example";
        "another host in a second line" => "$TOOL front-twice index.crates.io evil.example";
        "a name that begins like a registry" => "$TOOL proxy crates.io.evil.example:443";
    }
    "sockets" {
        "a socket in home" => "$TOOL unix $SOCKET";
        "a socket in /tmp" => "$TOOL unix $TMPSOCKET";
        "a socket with a blank in its name" => "$TOOL unix \"$SOCKETS/a b.sock\"";
        "a socket that was renamed" => "$TOOL unix $SOCKETS/renamed.sock";
        "a socket with a second name" => "$TOOL unix $SOCKETS/second.sock";
        "a socket whose path nobody knows" => "$TOOL unix $SOCKETS/unknown.sock";
        "a socket through a link" => "ln -sf $SOCKETS/renamed.sock l; $TOOL unix l";
        "a socket of the workspace" => "$TOOL unix service.sock";
        "a socket of datagrams" => "$TOOL datagram $SOCKETS/datagram.sock";
        "a pair of datagrams" => "$TOOL pair-datagram $SOCKETS/datagram.sock";
        "an abstract socket" => "$TOOL abstract $ABSTRACT";
        "the container engine" => "$TOOL unix /run/docker.sock || $TOOL unix /var/run/docker.sock";
        "the system's bus" => "$TOOL unix /run/dbus/system_bus_socket";
        "the session's bus" => "$TOOL unix /run/user/$(id -u)/bus";
        "the service manager" => "$TOOL unix /run/systemd/private || $TOOL unix /run/user/$(id -u)/systemd/private";
        "the display" => "$TOOL unix /tmp/.X11-unix/X0 || $TOOL abstract /tmp/.X11-unix/X0";
        "the ssh agent" => "test -S \"$SSH_AUTH_SOCK\" && $TOOL unix $SSH_AUTH_SOCK";
        "a packet socket" => "$TOOL socket 17 3";
        "a raw socket" => "$TOOL socket 2 3";
        "a socket of the virtual machine" => "$TOOL socket 40 1";
        "a socket of the kernel's ciphers" => "$TOOL socket 38 5";
        "a bluetooth socket" => "$TOOL socket 31 3";
        "a socket of another family" => "$TOOL socket 30 5";
    }
    "descriptors" {
        "one left open" => "$TOOL descriptors";
        "the parent's" => "readlink /proc/$PPID/fd/* | grep -q .";
        "a folder above through one" => "$TOOL above";
        "the terminal" => "exec 3<>/dev/tty";
        "typing into the terminal" => "$TOOL tiocsti";
        "the parent's terminal" => "echo x > /dev/pts/0";
    }
    "rights" {
        "a mount" => "$TOOL mount";
        "removing a cover by unmounting" => "$TOOL unmount $HOME/.ssh";
        "a new mount call" => "$TOOL open-tree";
        "a file system call" => "$TOOL fsopen";
        "changing mount flags" => "$TOOL mount-setattr";
        "another root" => "$TOOL chroot";
        "a user namespace" => "unshare -U true";
        "a user namespace by clone" => "$TOOL clone-user";
        "a user namespace by clone3" => "$TOOL clone3-user";
        "a mount namespace" => "$TOOL unshare 131072";
        "entering a namespace" => "$TOOL setns";
        "becoming root" => "$TOOL setuid";
        "a setuid program" => "cp /bin/true s; chmod 4755 s; $TOOL has-setuid s";
        "leaving a setuid file" => "cp /bin/true s && chmod u+s s";
        "leaving a setgid file" => "cp /bin/true s && chmod g+s s";
        "making a setuid file" => "$TOOL make-setuid s";
        "making a setuid file by a new call" => "$TOOL openat2-setuid s";
        "making a setuid node" => "$TOOL mknod-setuid s";
        "sudo" => "sudo -n true";
        "su" => "su -c true root </dev/null";
        "a capability" => "$TOOL capability";
        "a call under its second number" => "$TOOL x32";
        "kernel keys" => "$TOOL keyctl";
        "a kernel program" => "$TOOL bpf";
        "performance counters" => "$TOOL perf";
        "page faults of its own" => "$TOOL userfaultfd";
        "asynchronous calls" => "$TOOL io-uring";
        "a kernel module" => "$TOOL module";
        "another kernel" => "$TOOL kexec";
        "the clock" => "$TOOL clock";
        "the name of the machine" => "$TOOL hostname";
        "the kernel's messages" => "$TOOL syslog";
    }
    "dotfiles" {
        "our grants through a link" => "echo '{}' > dotfiles/dragoman/grants.json";
        "our grants by renaming" => "echo '{}' > g; mv -f g dotfiles/dragoman/grants.json";
        "replacing the folder of our grants" => "mv dotfiles/dragoman d && mkdir dotfiles/dragoman && echo '{}' > dotfiles/dragoman/grants.json";
        "replacing the folder of dotfiles" => "mv dotfiles d && mkdir dotfiles";
        "a start file through a link" => "echo evil >> dotfiles/zshrc";
        "a link in place of a start file" => "rm -f dotfiles/zshrc; ln -s ../evil dotfiles/zshrc";
        "a start file that a link waits for" => "echo evil > dotfiles/shell/bash_profile";
        "a folder that a link waits for" => "mv dotfiles/shell s && mkdir dotfiles/shell && echo evil > dotfiles/shell/bash_profile";
    }
    "home folder" {
        "replacing our data" => "mv .local x; mkdir -p .local/share/dragoman && echo '{}' > .local/share/dragoman/grants.json";
        "replacing our configuration" => "mv .config x && mkdir -p .config/dragoman && echo '{}' > .config/dragoman/config.json";
        "a new start file" => "echo evil > .bash_login";
        "a new start file by renaming" => "echo evil > work/e; mv work/e .profile";
        "a new start file by a hard link" => "echo evil > work/e; ln work/e .profile";
        "a link in place of a missing start file" => "ln -s work/evil .zlogin";
        "replacing a link to a start file" => "rm .zshrc && echo evil > .zshrc";
        "keys of visitors" => "echo evil >> .ssh/authorized_keys";
        "another folder of keys" => "mv .ssh s && mkdir .ssh && echo evil > .ssh/authorized_keys";
        "a missing folder of settings" => "mkdir -p .config/fish && echo evil > .config/fish/config.fish";
        "a missing folder of services" => "mkdir -p .config/systemd/user && echo evil > .config/systemd/user/x.service";
        "a missing folder of programs" => "mkdir bin && echo evil > bin/ls";
    }
    "environment" {
        "a key in the environment" => "env | grep -q CANARY";
        "our own process's environment" => "for p in /proc/[0-9]*/environ; do grep -aqs CANARY $p && exit 0; done; exit 1";
    }
    "runs later" {
        "settings of the repository" => "echo \"[core] fsmonitor = $EVIL\" >> .git/config";
        "settings by git" => "git config core.fsmonitor $EVIL";
        "settings by git in a file" => "git config --file .git/config core.fsmonitor $EVIL";
        "settings by renaming" => "cp .git/config c; echo \"[core] fsmonitor = $EVIL\" >> c; mv -f c .git/config";
        "settings behind a link" => "cp .git/config c; echo \"[core] fsmonitor = $EVIL\" >> c; ln -sf ../c .git/config";
        "settings through a hard link" => "ln .git/config c && echo \"[core] fsmonitor = $EVIL\" >> c";
        "settings through a descriptor" => "exec 3>>.git/config && echo \"[core] fsmonitor = $EVIL\" >&3";
        "settings of a worktree" => "git config extensions.worktreeConfig true; echo \"[core] fsmonitor = $EVIL\" >> .git/config.worktree";
        "an included file" => "echo \"[core] fsmonitor = $EVIL\" >> shared.inc";
        "an included file behind a link" => "echo \"[core] fsmonitor = $EVIL\" >> c; ln -s c shared.inc";
        "a common directory elsewhere" => "cp -r .git other; echo \"[core] fsmonitor = $EVIL\" >> other/config; echo ../other > .git/commondir";
        "a common directory by renaming" => "cp -r .git other; echo \"[core] fsmonitor = $EVIL\" >> other/config; echo ../other > c; mv c .git/commondir";
        "a common directory behind a link" => "cp -r .git other; echo \"[core] fsmonitor = $EVIL\" >> other/config; echo ../other > c; ln -s ../c .git/commondir";
        "a hook before a commit" => "cp $EVIL .git/hooks/pre-commit";
        "a hook for the index" => "cp $EVIL .git/hooks/post-index-change";
        "a hook for references" => "cp $EVIL .git/hooks/reference-transaction";
        "a hook behind a link" => "ln -s $EVIL .git/hooks/pre-commit";
        "another folder of hooks" => "mkdir h; cp $EVIL h/pre-commit; mv .git/hooks .git/old; ln -s ../h .git/hooks";
        "another repository in its place" => "mv .git old; git init -q '.'; git -C '.' config core.fsmonitor $EVIL";
        "a file in place of the repository" => "git init -q 'new'; git -C 'new' config core.fsmonitor $EVIL; mv .git old && echo 'gitdir: new/.git' > .git";
        "a link in place of the repository" => "git init -q 'new'; git -C 'new' config core.fsmonitor $EVIL; mv .git old && ln -s new/.git .git";
        "a repository removed and made anew" => "rm -rf .git; git init -q '.'; git -C '.' config core.fsmonitor $EVIL";
        "settings of a submodule" => "echo \"[core] fsmonitor = $EVIL\" >> .git/modules/sub/config; mkdir src; echo 'gitdir: ../.git/modules/sub' > src/.git";
        "a hook of a submodule" => "cp $EVIL .git/modules/sub/hooks/pre-commit; mkdir src; echo 'gitdir: ../.git/modules/sub' > src/.git";
        "a submodule that leads elsewhere" => "cp -r .git other; echo \"[core] fsmonitor = $EVIL\" >> other/config; echo ../../../other > .git/modules/sub/commondir; mkdir src; echo 'gitdir: ../.git/modules/sub' > src/.git";
        "a new submodule" => "mkdir -p '.git/modules/new/objects' '.git/modules/new/refs'; echo 'ref: refs/heads/main' > '.git/modules/new/HEAD'; echo \"[core] fsmonitor = $EVIL\" >> .git/modules/new/config; mkdir src; echo 'gitdir: ../.git/modules/new' > src/.git";
        "a worktree that leads elsewhere" => "cp -r .git other; echo \"[core] fsmonitor = $EVIL\" >> other/config; mkdir -p .git/worktrees/w src; echo 'ref: refs/heads/main' > .git/worktrees/w/HEAD; echo $PWD/other > .git/worktrees/w/commondir; echo $PWD/src/.git > .git/worktrees/w/gitdir; echo 'gitdir: ../.git/worktrees/w' > src/.git";
        "settings of a new worktree" => "git config extensions.worktreeConfig true; git commit -q --allow-empty -m x; git worktree add -q src; echo \"[core] fsmonitor = $EVIL\" >> .git/worktrees/src/config.worktree";
        "steps of a rebase" => "git commit -q --allow-empty -m x; mkdir .git/rebase-merge; echo \"exec $EVIL\" > .git/rebase-merge/git-rebase-todo; echo refs/heads/main > .git/rebase-merge/head-name; git rev-parse HEAD | tee .git/rebase-merge/onto > .git/rebase-merge/orig-head; touch .git/rebase-merge/interactive";
        "a bare layout" => "mkdir -p 'src/objects' 'src/refs'; echo 'ref: refs/heads/main' > 'src/HEAD'; echo \"[core] fsmonitor = $EVIL\" >> src/config; printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = .\\n' >> src/config";
        "a bare repository by git" => "git init -q --bare src; git -C src config core.bare false; git -C src config core.worktree .; git -C src config core.fsmonitor $EVIL";
        "a bare layout that leads elsewhere" => "git init -q 'other'; git -C 'other' config core.fsmonitor $EVIL; mkdir -p src; echo 'ref: refs/heads/main' > src/HEAD; echo ../other/.git > src/commondir; mkdir work; echo 'gitdir: ../src' > work/.git";
        "a repository in a folder" => "git init -q 'src'; git -C 'src' config core.fsmonitor $EVIL";
        "a repository deep below" => "git init -q 'a/b/c/d/e'; git -C 'a/b/c/d/e' config core.fsmonitor $EVIL";
        "a repository with a blank in its name" => "git init -q 'a b'; git -C 'a b' config core.fsmonitor $EVIL";
        "a repository in a hidden folder" => "git init -q '.cache/x'; git -C '.cache/x' config core.fsmonitor $EVIL";
        "a repository in node_modules" => "echo '{}' > package.json; git init -q 'node_modules/x'; git -C 'node_modules/x' config core.fsmonitor $EVIL";
        "a hook in node_modules" => "echo '{}' > package.json; git init -q 'node_modules/x'; mkdir -p 'node_modules/x/.git/hooks'; cp $EVIL 'node_modules/x/.git/hooks/pre-commit'";
        "a repository in target" => "touch Cargo.toml; git init -q 'target/debug/x'; git -C 'target/debug/x' config core.fsmonitor $EVIL";
        "a hook in target" => "touch Cargo.toml; git init -q 'target/x'; mkdir -p 'target/x/.git/hooks'; cp $EVIL 'target/x/.git/hooks/post-index-change'";
        "a repository in .venv" => "mkdir -p .venv; touch .venv/pyvenv.cfg; git init -q '.venv/lib/x'; git -C '.venv/lib/x' config core.fsmonitor $EVIL";
        "a repository in a folder of builds" => "git init -q 'build/x'; git -C 'build/x' config core.fsmonitor $EVIL";
        "a repository in a folder of caches" => "mkdir -p .mypy_cache; touch .mypy_cache/CACHEDIR.TAG; git init -q '.mypy_cache/x'; git -C '.mypy_cache/x' config core.fsmonitor $EVIL";
        "a repository that a template fills" => "mkdir -p t/hooks; cp $EVIL t/hooks/pre-commit; git init -q --template=$PWD/t src";
        "a clone that a template fills" => "git commit -q --allow-empty -m x; mkdir -p t/hooks; cp $EVIL t/hooks/pre-commit; git clone -q --template=$PWD/t . src";
        "a repository with its directory elsewhere" => "git init -q --separate-git-dir=store src; git -C src config core.fsmonitor $EVIL";
        "a file .git" => "git init -q 'other'; git -C 'other' config core.fsmonitor $EVIL; mkdir src; echo 'gitdir: ../other/.git' > src/.git; git -C other config core.worktree $PWD/src";
        "a link .git" => "git init -q 'other'; git -C 'other' config core.fsmonitor $EVIL; mkdir src; ln -s ../other/.git src/.git";
        "a file .git to the temporary folder" => "git init -q $TMPDIR/x; git -C $TMPDIR/x config core.fsmonitor $EVIL; mkdir src; echo gitdir: $TMPDIR/x/.git > src/.git";
        "a filter" => "git init -q src; git -C src config filter.x.clean $EVIL; echo '* filter=x' > src/.gitattributes; touch src/file";
        "a program that shows differences" => "git init -q src; cd src; touch file; git add file; git config diff.external $EVIL; echo x > file";
        "settings that include others" => "echo \"[core] fsmonitor = $EVIL\" >> c; git init -q src; git -C src config include.path $PWD/c";
        "settings for a folder" => "echo \"[core] fsmonitor = $EVIL\" >> c; git init -q src; git -C src config includeIf.gitdir:**.path $PWD/c";
        "a process that goes on" => "(sleep 0.05; echo \"[core] fsmonitor = $EVIL\" >> .git/config; cp $EVIL .git/hooks/pre-commit) & disown";
        "while git commits" => "(while :; do cp $EVIL .git/hooks/pre-commit; done) 2>/dev/null & git commit -q --allow-empty -m x; kill $!";
    }
};
