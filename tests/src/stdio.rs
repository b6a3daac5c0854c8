//! The real `longshore stdio`, as a process: lines in, lines out.
//!
//! Every line that comes must be one JSON-RPC message, and is judged by the schema of its era.

use crate::era::{Pipe, Said};
use crate::home::Home;
use crate::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A server at the end of two pipes.
#[derive(Debug)]
pub struct StdioServer {
    /// Its files.
    pub home: Arc<Home>,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
    pipe: Pipe,
}

impl StdioServer {
    /// Starts one with these components and settings.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(components: &[&str], config: &str) -> Self {
        Self::start_in(Arc::new(Home::new(components, config)))
    }

    /// Starts one in this home.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_in(home: Arc<Home>) -> Self {
        let mut command = home.subcommand("stdio");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::<Mutex<String>>::default();
        let (kept, stderr) = (log.clone(), child.stderr.take().unwrap());
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                *kept.lock().unwrap() += &format!("{line}\n");
            }
        });
        let lines = read_lines(child.stdout.take().unwrap());
        Self {
            home,
            input: child.stdin.take(),
            child,
            lines,
            log,
            pipe: Pipe::default(),
        }
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said on its standard error.
    ///
    /// # Panics
    /// If its reader has.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends bytes as they are.
    ///
    /// # Panics
    /// If the server does not read.
    pub fn write(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(message) = serde_json::from_slice(line) {
                self.pipe.sent(Said::of(&message));
            }
        }
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// Sends a message.
    ///
    /// # Panics
    /// If the server does not read.
    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// The next message.
    ///
    /// # Panics
    /// If none comes, or a line is none.
    pub fn message(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|error| panic!("no line: {error}; {}", self.log()));
        self.read(&line)
    }

    /// The next message, if one comes within this time.
    ///
    /// # Panics
    /// If a line is no message.
    pub fn message_within(&mut self, bound: Duration) -> Option<Value> {
        match self.lines.recv_timeout(bound) {
            Ok(line) => Some(self.read(&line)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    fn read(&mut self, line: &str) -> Value {
        let message: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message:#}");
        if let Err(fault) = self.pipe.came(&message) {
            panic!("the server's message: {fault}");
        }
        message
    }

    /// Sends a request, and reads until its response; what came before it is told too.
    ///
    /// # Panics
    /// If there is none.
    pub fn exchange(&mut self, message: &Value) -> (Value, Vec<Value>) {
        self.send(message);
        let mut others = Vec::new();
        loop {
            let next = self.message();
            if next.get("method").is_none() && next["id"] == message["id"] {
                return (next, others);
            }
            others.push(next);
        }
    }

    /// Begins a session.
    ///
    /// # Panics
    /// If the server does not agree.
    pub fn initialize(&mut self, revision: &str, capabilities: &Value) -> Value {
        let message = crate::legacy::initialize(revision, capabilities);
        let (response, _) = self.exchange(&message);
        assert_eq!(
            response["result"]["protocolVersion"], revision,
            "{response:#}"
        );
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        response
    }

    /// Ends its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the reading end of its output.
    pub fn close_output(&mut self) {
        // The reader thread ends, and the pipe with it, at the next line.
        self.lines = channel().1;
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// If it does not within this time.
    pub fn ended_within(&mut self, bound: Duration) -> ExitStatus {
        let child = &mut self.child;
        wait_for("the server to end", bound, || child.try_wait().unwrap())
    }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            show(&self.log());
        }
    }
}

#[allow(
    clippy::print_stderr,
    reason = "the harness shows it with the failed test"
)]
fn show(log: &str) {
    eprintln!("--- the server said:\n{log}---");
}

fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output
            .by_ref()
            .take(64 << 20)
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
            if sender.send(text.trim_end_matches('\n').to_owned()).is_err() {
                return;
            }
        }
    });
    lines
}
