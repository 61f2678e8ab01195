//! A connection through the proxy as a program's input and output: what ssh starts as its `ProxyCommand` inside of the
//! sandbox.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::ExitCode;

/// The hidden argument after the first one.
pub(crate) const CONNECT_ARGUMENT: &str = "connect";

/// The answer of a proxy is a few lines.
const LONGEST_ANSWER: usize = 4096;

pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let connected = match words.as_slice() {
        [host, port] => connect(&format!("{host}:{port}")),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    match connected.and_then(exchange) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn connect(target: &str) -> io::Result<TcpStream> {
    #[expect(clippy::disallowed_methods, reason = "the helper sets this variable for the commands it starts")]
    let proxy = std::env::var("HTTPS_PROXY").unwrap_or_default();
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://"))?;
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut byte = [0];
    // One by one: what follows belongs to the connection.
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
        if answer.len() > LONGEST_ANSWER {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    if answer.split(|byte| *byte == b' ').nth(1) == Some(b"200") {
        return Ok(stream);
    }
    io::stderr().write_all(&answer)?;
    Err(io::ErrorKind::ConnectionRefused.into())
}

fn exchange(stream: TcpStream) -> io::Result<()> {
    let mut sending = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = copy(&mut io::stdin().lock(), &mut sending);
        let _ = sending.shutdown(Shutdown::Write);
    });
    copy(&mut &stream, &mut io::stdout().lock())
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut piece = [0; 16 * 1024];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            length => {
                to.write_all(&piece[..length])?;
                to.flush()?;
            }
        }
    }
}
