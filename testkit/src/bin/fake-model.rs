//! The fake model as a program, for shells and demonstrations: prints its url and answers what the prompt's text asks
//! for (see `testkit::fake_model::echo`). `fake-model [ADDRESS]`, by default a free port of this machine.

#![allow(clippy::print_stdout, reason = "printing the url is what it is for")]

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let fake = testkit::FakeModel::listen(&address).await;
    println!("{}", fake.url());
    let _ = tokio::signal::ctrl_c().await;
}
