//! The rules of the repository hold.

#[test]
fn the_repository_is_tidy() {
    let problems = xtask::tidy::problems();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
