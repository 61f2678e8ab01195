//! Small values, shared by all processes.

use domain::Store;

use crate::journal;

#[tokio::test]
async fn records_are_kept_by_kind_and_key() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path());
    assert_eq!(first.get("reset", "openai").await.unwrap(), None);
    first.put("reset", "openai", "soon".to_owned()).await.unwrap();
    first.put("reset", "openai", "later".to_owned()).await.unwrap();
    first.put("other", "openai", "text".to_owned()).await.unwrap();
    let second = journal(directory.path());
    assert_eq!(second.get("reset", "openai").await.unwrap().as_deref(), Some("later"));
    assert_eq!(second.get("reset", "anthropic").await.unwrap(), None);
    assert!(second.add("other", "openai", 1.0).await.is_err());
    assert_eq!(second.get("other", "openai").await.unwrap().as_deref(), Some("text"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_lose_no_addition() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(journal(directory.path()).add("spent", "today", 0.0).await.unwrap(), 0.0);
    let adders: Vec<_> = (0..4)
        .map(|_| {
            let journal = journal(directory.path());
            tokio::spawn(async move {
                for _ in 0..25 {
                    journal.add("spent", "today", 0.25).await.unwrap();
                }
            })
        })
        .collect();
    for adder in adders {
        adder.await.unwrap();
    }
    let journal = journal(directory.path());
    assert_eq!(journal.add("spent", "today", 0.0).await.unwrap(), 25.0);
    assert_eq!(journal.add("spent", "today", -0.1).await.unwrap(), 24.9);
    for amount in [f64::NAN, f64::INFINITY] {
        assert!(journal.add("spent", "today", amount).await.is_err());
    }
    assert_eq!(journal.add("spent", "today", 0.0).await.unwrap(), 24.9);
}
