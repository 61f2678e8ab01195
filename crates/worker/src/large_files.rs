//! The large files (git LFS) of a new checkout, where the task asks for them and the worker's settings allow them.
//!
//! The program `git-lfs` only downloads, from the address of the repository itself, before a model has worked there. The
//! objects of a local repository are taken as they are. Invariant: a file is replaced only by bytes that have the size and
//! the SHA-256 that its pointer names.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::git::{Git, Network};

/// A pointer is never larger.
const MAX_POINTER: u64 = 1024;
const FIRST_LINE: &str = "version https://git-lfs.github.com/spec/v1";

#[derive(Debug, PartialEq)]
struct Pointer {
    hash: String,
    size: u64,
}

/// Replaces pointers by what they name and returns the paths. `address`: where the repository came from; `source`: the git
/// directory that has the objects.
pub(super) async fn fetch(
    network: &Network,
    folder: &Path,
    address: Option<&str>,
    source: &Path,
) -> Result<Vec<String>, String> {
    let git = Git::open(folder).await?;
    let listed = git.run(&["ls-tree", "-r", "-l", "-z", "HEAD"], Vec::new()).await?;
    let pointers: Vec<(String, Pointer)> =
        listed.split(|byte| *byte == 0).filter_map(|entry| pointer_of(folder, entry)).collect();
    if pointers.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(address) = address {
        let server = format!("lfs.url={}", server_of(address));
        let commit = git.ask(&["rev-parse", "--verify", "HEAD^{commit}"]).await?;
        let arguments =
            ["-c", &server, "lfs", "fetch", "--include=*", "--exclude=", "origin", commit.as_str()];
        let fetched = network.run(folder, &arguments).await;
        fetched.map_err(|problem| format!("The large files cannot be fetched: {problem}"))?;
    }
    let objects = source.join("lfs/objects");
    let folder = folder.to_owned();
    let replaced = tokio::task::spawn_blocking(move || {
        for (path, pointer) in &pointers {
            replace(&objects, &folder.join(path), pointer)
                .map_err(|error| format!("The large file {path} cannot be used: {error}."))?;
        }
        Ok(pointers.into_iter().map(|(path, _)| path).collect())
    });
    replaced.await.map_err(|error| error.to_string())?
}

/// Where the large files of an address are: what git-lfs itself takes, whatever the repository's own settings say.
fn server_of(address: &str) -> String {
    if !address.starts_with("https://") {
        return address.to_owned();
    }
    let address = address.trim_end_matches('/');
    let end = if address.ends_with(".git") { "" } else { ".git" };
    format!("{address}{end}/info/lfs")
}

/// The pointer of an entry of the tree: a small file of text.
fn pointer_of(folder: &Path, entry: &[u8]) -> Option<(String, Pointer)> {
    let (head, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
    let mut words = head.split_ascii_whitespace();
    let (mode, size) = (words.next()?, words.next_back()?);
    if !mode.starts_with("100") || size.parse::<u64>().ok()? > MAX_POINTER {
        return None;
    }
    let file = folder.join(path);
    let is_small = std::fs::symlink_metadata(&file).is_ok_and(|it| it.is_file() && it.len() <= MAX_POINTER);
    let text = std::fs::read_to_string(file).ok().filter(|_| is_small)?;
    Some((path.to_owned(), parse(&text)?))
}

fn parse(text: &str) -> Option<Pointer> {
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let (mut hash, mut size) = (None, None);
    for line in lines {
        match line.split_once(' ')? {
            ("oid", value) => hash = value.strip_prefix("sha256:"),
            ("size", value) => size = value.parse().ok(),
            _ => {}
        }
    }
    let is_hash = |hash: &&str| {
        hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    };
    Some(Pointer { hash: hash.filter(is_hash)?.to_owned(), size: size? })
}

fn replace(objects: &Path, file: &Path, pointer: &Pointer) -> std::io::Result<()> {
    let hash = &pointer.hash;
    let object: PathBuf = objects.join(&hash[..2]).join(&hash[2..4]).join(hash);
    let mut source = std::fs::File::open(object)?.take(pointer.size.saturating_add(1));
    // The file keeps its mode, and stays as it is where the object is wrong.
    let mut copy = tempfile::tempfile_in(file.parent().unwrap_or(file))?;
    let (mut digest, mut size) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = source.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        copy.write_all(&buffer[..read])?;
        size += read as u64;
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if size != pointer.size || found != *hash {
        return Err(std::io::Error::other("its bytes are not those that the repository names"));
    }
    std::io::Seek::rewind(&mut copy)?;
    let mut target = std::fs::File::options().write(true).truncate(true).open(file)?;
    std::io::copy(&mut copy, &mut target).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pointers_are_read() {
        let hash = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let good = format!("{FIRST_LINE}\noid sha256:{hash}\nsize 12345\n");
        assert_eq!(parse(&good), Some(Pointer { hash: hash.to_owned(), size: 12345 }));
        for bad in [
            String::new(),
            good.replace("v1", "v2"),
            good.replace(hash, "../../etc/passwd"),
            good.replace("size 12345", "size x"),
            good.replace("sha256:", "md5:"),
            format!("{FIRST_LINE}\n"),
        ] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn large_files_come_from_the_address_of_the_repository() {
        for (address, expected) in [
            ("https://h/acme/shop.git", "https://h/acme/shop.git/info/lfs"),
            ("https://h/acme/shop/", "https://h/acme/shop.git/info/lfs"),
            ("git@h:acme/shop.git", "git@h:acme/shop.git"),
        ] {
            assert_eq!(server_of(address), expected);
        }
    }

    #[test]
    fn an_object_with_other_bytes_replaces_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let hash: String = Sha256::digest(b"large").iter().map(|byte| format!("{byte:02x}")).collect();
        let object = folder.path().join(&hash[..2]).join(&hash[2..4]);
        std::fs::create_dir_all(&object).expect("a folder");
        let file = folder.path().join("file");
        let pointer = Pointer { hash: hash.clone(), size: 5 };
        for (bytes, expected) in [("wrong", "pointer"), ("large and more", "pointer"), ("large", "large")] {
            std::fs::write(&file, "pointer").expect("a file");
            std::fs::write(object.join(&hash), bytes).expect("an object");
            assert_eq!(replace(folder.path(), &file, &pointer).is_ok(), expected == "large");
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), expected);
        }
    }
}
