//! The fake model as a program, for shells and demonstrations: prints its url and answers what the prompt's text asks
//! for (see `testkit::fake_model::echo`). `fake-model [ADDRESS]`, by default a free port of this machine;
//! `fake-model --story` first tells what `scripts/record` shows.

#![allow(clippy::print_stdout, reason = "printing the url is what it is for")]

use std::time::Duration;

use serde_json::json;
use testkit::Answer;

#[tokio::main]
async fn main() {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let story = argument == "--story";
    let fake = testkit::FakeModel::listen(if story { "127.0.0.1:0" } else { &argument }).await;
    if story {
        for answer in recorded() {
            fake.answer(answer);
        }
    }
    println!("{}", fake.url());
    let _ = tokio::signal::ctrl_c().await;
}

/// A bug is found, its fix proposed and, once allowed, explained.
fn recorded() -> [Answer; 2] {
    let edit = json!({
        "path": "price.py",
        "original_content": "def total(items):\n    return sum(item.price for item in items)",
        "new_content": "def total(items):\n    prices = [item.price for item in items or []]\n    return sum(prices, Decimal(0))",
    });
    let pace = Duration::from_millis(70);
    [
        Answer::new()
            .every(pace)
            .reasoning("An empty cart is None here, not an empty list, and sum starts at the integer 0.")
            .say("An empty cart arrives as `None`, and `sum` cannot go through that. I would make the function take both:")
            .call("c1", "eca__edit_file", edit),
        Answer::new().every(pace).say(
            "Done. What changed:\n\n- `items or []` takes **None** for an empty cart\n- the sum starts at \
             `Decimal(0)`, so the result is money even when nothing is in it\n\n```python\nassert total(None) == Decimal(0)\
             \nassert total([]) == Decimal(0)  # as before\n```\n\nThe caller needs no special case any more.",
        ),
    ]
}
