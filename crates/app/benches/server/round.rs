//! What a round of tool calls is made of: the processor time and the wake-ups of the program, and the least that the machine
//! takes for the same exchange with the model, for one sync and for one wake-up.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc;
use std::time::Instant;

use testkit::FakeModel;

use crate::long_chat::sending;
use crate::program::{Home, Server, dragoman};
use crate::table::Table;
use crate::{is_finished, median};

const ROUNDS: usize = 50;
const SAMPLES: usize = 200;

pub(crate) fn rows(table: &mut Table, fake: &FakeModel) {
    let home = Home::new();
    let lines: String = (0..100).map(|line| format!("line {line}\n")).collect();
    std::fs::write(home.path().join("notes.txt"), lines).expect("a file");
    let mut server = Server::start(&dragoman(), &home, fake);
    server.initialize(&home);
    server.prompt("c", "hello");
    server.until(is_finished);
    fake.forget_requests();
    let (cpu, switches) = server.work();
    let since = Instant::now();
    server.prompt("c", &format!("tools {ROUNDS}"));
    server.until(is_finished);
    let wall = since.elapsed().as_secs_f64() * 1000.0;
    let (cpu, switches) = (server.work().0 - cpu, server.work().1 - switches);
    let requests = fake.requests();
    let body = requests.get(ROUNDS / 2).map(|it| it.body.to_string()).unwrap_or_default();
    let per_round = |value: f64| value / ROUNDS as f64;
    let none = f64::INFINITY;
    table.row("a round of tool calls: all of it", "ms", per_round(wall), none);
    table.row("  processor time of the program", "ms", per_round(cpu), none);
    table.row("  waits of its threads", "", per_round(switches), none);
    table.row("  the same request to the model by itself", "ms", sending(fake, &body), none);
    table.row("  one sync of three pages", "ms", sync(&home), none);
    table.row("  one wake-up of a thread", "ms", wake_up(), none);
}

fn sync(home: &Home) -> f64 {
    let mut file = File::create(home.path().join("synced")).expect("a file");
    let times = (0..SAMPLES).map(|_| {
        let since = Instant::now();
        file.write_all(&[1; 3 * 4096]).and_then(|()| file.sync_all()).expect("a sync");
        since.elapsed().as_secs_f64() * 1000.0
    });
    median(times.collect())
}

/// Half of the time in which another thread answers.
fn wake_up() -> f64 {
    let (ask, asked) = mpsc::channel::<()>();
    let (answer, answered) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || while asked.recv().is_ok() && answer.send(()).is_ok() {});
    let mut times = Vec::new();
    for _ in 0..SAMPLES {
        // Both threads sleep before each question.
        std::thread::sleep(std::time::Duration::from_millis(1));
        let since = Instant::now();
        ask.send(()).expect("the thread");
        answered.recv().expect("an answer");
        times.push(since.elapsed().as_secs_f64() * 1000.0 / 2.0);
    }
    drop(ask);
    thread.join().expect("the thread");
    median(times)
}
