//! `dragoman server`: ECA on stdin and stdout.

use std::process::ExitCode;

use config::Environment;
use domain::Failure;
use tokio::sync::mpsc;

use crate::cli::Level;
use crate::house::House;
use crate::lifetime;
use crate::logging;

pub fn run(level: Option<Level>) -> ExitCode {
    let environment = Environment::from_process();
    logging::start(&environment, level);
    lifetime::run(async move {
        let engine = House::open(environment)?;
        let transport =
            rpc::stdio().map_err(|error| Failure::internal(format!("stdin cannot be read: {error}.")))?;
        let (parent, parents) = mpsc::unbounded_channel();
        let served = proto_eca::serve(engine.clone(), transport, proto_eca::Outside { parent });
        lifetime::serve(engine, served, parents).await;
        Ok(())
    })
}
