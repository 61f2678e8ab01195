//! Random histories of the agent's edits, its commands, the user's edits, renames and commits.
//!
//! After everything is undone, each file that the user did not touch is as it was, and each line that the user wrote and
//! did not remove is on disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Bench, Dice, scale, sh};

const NAMES: [&str; 8] =
    ["a.txt", "b.txt", "src/c.txt", "src/d.txt", "src/deep/e.txt", ".env", "f g.txt", "docs/h.md"];

struct History {
    bench: Bench,
    dice: Dice,
    turn: u64,
    /// Lines of the user's, each different.
    lines: BTreeSet<String>,
    written: u64,
    touched: BTreeSet<PathBuf>,
    with_git: bool,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            dice.below(2);
        }
        let with_git = dice.below(10) == 0;
        let bench = Bench::new();
        let (lines, touched) = Default::default();
        Self { bench, dice, turn: 0, lines, written: 0, touched, with_git }
    }

    fn name(&mut self) -> PathBuf {
        let name = NAMES[self.dice.below(NAMES.len())];
        self.bench.path(name)
    }

    fn user_line(&mut self) -> String {
        self.written += 1;
        let line = format!("user {}", self.written);
        self.lines.insert(line.clone());
        line
    }

    fn begin(&mut self) {
        for name in NAMES {
            if self.dice.below(3) > 0 {
                let text: Vec<String> = (0..1 + self.dice.below(6)).map(|_| self.user_line()).collect();
                self.bench.write(name, format!("{}\n", text.join("\n")));
            }
        }
        if self.with_git {
            sh(&self.bench.root(), "git init -q . && git add -A && git commit -qm begin");
        }
    }

    fn user_acts(&mut self) {
        let path = self.name();
        self.touched.insert(path.clone());
        match self.dice.below(5) {
            0 => {
                let text = fs::read_to_string(&path).unwrap_or_default();
                self.lines.retain(|line| !text.lines().any(|removed| removed == line));
                let _ = fs::remove_file(&path);
            }
            1 => {
                let target = self.name();
                self.touched.insert(target.clone());
                if !target.exists() && path.is_file() {
                    make_parent(&target);
                    fs::rename(&path, &target).unwrap();
                }
            }
            2 => {
                let mut text: Vec<String> = lines_of(&path);
                let at = self.dice.below(text.len() + 1);
                text.insert(at, self.user_line());
                save(&path, &text);
            }
            _ => {
                let mut text = lines_of(&path);
                text.push(self.user_line());
                save(&path, &text);
            }
        }
    }

    fn agent_acts(&mut self) {
        let (path, number) = (self.name(), self.dice.below(100));
        let mut text = lines_of(&path);
        let at = self.dice.below(text.len() + 1);
        match self.dice.below(3) {
            0 => text.insert(at, format!("agent {number}")),
            1 => text.truncate(at),
            _ => text = vec![format!("agent rewrote {number}")],
        }
        let name = path.strip_prefix(self.bench.root()).unwrap().to_str().unwrap().to_owned();
        if self.dice.below(5) == 0 && path.is_file() {
            self.bench.tool(self.turn, &name, |path| fs::remove_file(path).unwrap());
        } else {
            self.bench.tool(self.turn, &name, |path| save(path, &text));
        }
    }

    fn agent_runs(&mut self) {
        let (path, other, choice) = (self.name(), self.name(), self.dice.below(8));
        let root = self.bench.root();
        let commits = self.with_git && self.dice.below(2) == 0;
        self.bench.command(self.turn, || {
            match choice {
                0 => drop(fs::remove_dir_all(root.join("src"))),
                1 => drop(fs::remove_file(&path)),
                2 if path.is_file() => {
                    make_parent(&other);
                    drop(fs::rename(&path, &other));
                }
                3 if path.is_file() => {
                    make_parent(&other);
                    drop(fs::copy(&path, &other));
                }
                4 if path.is_file() => save(&path, &[]),
                5 => drop(fs::rename(root.join("src"), root.join("moved"))),
                6 => NAMES.iter().for_each(|name| drop(fs::remove_file(root.join(name)))),
                _ => save(&path, &["command".to_owned()]),
            }
            if commits {
                sh(&root, "git add -A && git commit -qm agent --allow-empty");
            }
        });
    }

    fn play(&mut self) {
        for _ in 0..2 + self.dice.below(4) {
            self.turn += 1;
            for _ in 0..1 + self.dice.below(3) {
                if self.dice.below(2) == 0 { self.agent_acts() } else { self.agent_runs() }
            }
            for _ in 0..self.dice.below(3) {
                self.user_acts();
            }
        }
    }

    fn undo_all(&mut self) {
        if self.dice.below(3) == 0 {
            self.bench.restart();
        }
        if self.dice.below(2) == 0 {
            if let Some(plan) = self.bench.store.plan_undo("chat", Some(1)).unwrap() {
                self.bench.store.apply(&plan).unwrap();
            }
        } else {
            while let Some(plan) = self.bench.store.plan_undo("chat", None).unwrap() {
                self.bench.store.apply(&plan).unwrap();
            }
        }
    }
}

fn lines_of(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn make_parent(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
}

fn save(path: &Path, lines: &[String]) {
    make_parent(path);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path, text).unwrap();
}

#[test]
fn no_history_loses_a_byte_of_the_users() {
    for seed in 1..=200 * scale() {
        let mut history = History::new(seed);
        history.begin();
        let before = history.bench.tree();
        history.play();
        history.undo_all();
        let after = history.bench.tree();
        let root = history.bench.root();
        for (path, state) in &before {
            let is_file = state.0 == "file" && !path.starts_with(".git");
            if is_file && !history.touched.contains(&root.join(path)) {
                assert_eq!(after.get(path), Some(state), "history {seed}: {}", path.display());
            }
        }
        let texts: Vec<String> =
            after.values().map(|(_, bytes, _)| String::from_utf8_lossy(bytes).into_owned()).collect();
        for line in &history.lines {
            let found = texts.iter().any(|text| text.lines().any(|one| one == line));
            assert!(found, "history {seed} lost the line {line:?}");
        }
    }
    println!("figure: {} random histories of edits, 0 bytes of the user lost", 200 * scale());
}
