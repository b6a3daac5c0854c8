//! The real `longshore`, as a process: on a free port, with a home of its own, ended when it is dropped.

pub use crate::home::{
    CONFORMANCE, FIXTURES, HOSTILE, Home, SCHEMAS, VERSION_A, VERSION_B, binary, component, marked,
    token, variant,
};
pub use crate::task::Task;

use crate::client::{Connection, Message, Reply, Stream};
use crate::wait::{PATIENCE, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// The first start compiles its plugins with a debug build, beside other tests.
const START: std::time::Duration = std::time::Duration::from_secs(120);

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Its files.
    pub home: Arc<Home>,
    address: SocketAddr,
    child: Child,
    log: Log,
    /// Ends with the process, when all that it said is in the log.
    reader: Option<JoinHandle<()>>,
    reaper: Option<Child>,
}

impl Server {
    /// Starts one with these components and settings, and waits until it has looked at all of them.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub fn start(components: &[&str], config: &str) -> Self {
        Self::start_in(Arc::new(Home::new(components, config))).settled()
    }

    /// Starts one in this home. It may be at its first look at the plugins yet.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub fn start_in(home: Arc<Home>) -> Self {
        let command = home.command();
        Self::start_by(home, command)
    }

    /// The same, and it has one core for all that it does.
    ///
    /// # Panics
    /// As [`Server::start_in`], and if there is no `taskset`.
    pub fn start_on_one_core(home: Arc<Home>) -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let first: String = allowed
            .unwrap()
            .trim()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let command = home.command();
        let mut pinned = Command::new("taskset");
        pinned
            .args(["-c", &first])
            .arg(command.get_program())
            .args(command.get_args());
        Self::start_by(home, pinned)
    }

    /// Starts one by a command that serves this home.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub fn start_by(home: Arc<Home>, command: Command) -> Self {
        let log = Log::default();
        let (child, reader, address) = launch(command, &log);
        Self {
            home,
            address,
            child,
            log,
            reader: Some(reader),
            reaper: None,
        }
    }

    /// Has it ended with the process of the tests, also if nobody drops it.
    ///
    /// # Panics
    /// If there is no shell.
    pub fn ends_with_tests(mut self) -> Self {
        let script = "cat >/dev/null; kill -9 \"$0\"; rm -rf \"$1\"";
        let reaper = Command::new("sh")
            .args(["-c", script, &self.child.id().to_string()])
            .arg(self.home.path())
            .stdin(Stdio::piped())
            .spawn();
        self.reaper = Some(reaper.unwrap());
        self
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory.
    ///
    /// # Panics
    /// If it has ended.
    pub fn memory_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory that it ever had.
    ///
    /// # Panics
    /// If it has ended.
    pub fn memory_bytes_at_most(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let kib = status.lines().find_map(|line| {
            let size = line.strip_prefix(name)?.strip_suffix("kB")?;
            size.trim().parse::<u64>().ok()
        });
        kib.unwrap() << 10
    }

    /// How many files and sockets it has open.
    ///
    /// # Panics
    /// If it has ended.
    pub fn descriptors(&self) -> usize {
        let open = fs::read_dir(format!("/proc/{}/fd", self.pid()));
        open.unwrap().count()
    }

    /// What it has said on its standard error.
    pub fn log(&self) -> String {
        self.log.text().clone()
    }

    /// What it says on its standard error, also after its end.
    pub fn log_handle(&self) -> Log {
        self.log.clone()
    }

    /// A new connection.
    ///
    /// # Panics
    /// If it does not listen.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address).unwrap()
    }

    /// Sends a message on a new connection.
    ///
    /// # Panics
    /// If there is no reply, or the schemas find a fault.
    pub fn send(&self, message: &Message) -> Reply {
        let reply = self.connect().exchange(message);
        let reply = reply.unwrap_or_else(|error| panic!("{error}, to {}", message.json()));
        if reply.messages.len() == 1 && reply.response().get("id").is_some() {
            let (sent, got) = (&message.json()["id"], &reply.response()["id"]);
            assert!(
                sent == got || reply.response().get("error").is_some(),
                "{got} answers {sent}"
            );
        }
        reply
    }

    /// Sends a message and reads its reply as it comes.
    ///
    /// # Panics
    /// If there is no reply.
    pub fn stream(&self, message: &Message) -> Stream {
        self.connect().stream(message).unwrap()
    }

    /// Calls a tool, with no capability declared.
    pub fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.send(&Message::call(tool, arguments))
    }

    /// Calls a tool as a client that understands tasks and answers every question; it must become a task.
    pub fn call_task(&self, tool: &str, arguments: Value) -> Task<'_> {
        let reply = self.send(&Message::call(tool, arguments).tasks().asks());
        self.task(reply.task_id())
    }

    /// A task by its id.
    pub fn task(&self, id: &str) -> Task<'_> {
        Task::new(self, id)
    }

    /// The names of the tools that it lists.
    pub fn tools(&self) -> Vec<String> {
        let reply = self.send(&Message::new("tools/list"));
        let tools = reply.result()["tools"].as_array().unwrap();
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    }

    /// Gets a path by a plain GET: status and body.
    ///
    /// # Panics
    /// If there is no reply.
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut connection = self.connect();
        let host = self.address;
        let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        connection.write(text.as_bytes()).unwrap();
        let (head, body) = connection.plain_reply().unwrap();
        (head.status(), String::from_utf8(body).unwrap())
    }

    /// Waits until all that lay in the folder at its start is served or refused.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn settled(self) -> Self {
        wait_for("the first look to be over", START, || {
            let (_, text) = self.get("/readyz");
            text.contains("\"first_look_over\":true").then_some(())
        });
        self
    }

    /// Name and reason of each file that it does not serve, as it says itself.
    ///
    /// # Panics
    /// If it says nothing of that.
    pub fn refused(&self) -> BTreeMap<String, String> {
        let (_, ready) = self.get("/readyz");
        let ready: Value = serde_json::from_str(&ready).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let entries = ready["refused"].as_array().unwrap().iter();
        entries
            .map(|entry| (text(&entry["name"]), text(&entry["reason"])))
            .collect()
    }

    /// Is it well? It answers, and is still the same process.
    ///
    /// # Panics
    /// If it is not.
    pub fn check_alive(&mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "the server has ended");
        self.send(&Message::new("server/discover")).result();
    }

    /// Ends it by a signal that it cannot see.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn kill(self) -> Arc<Home> {
        Arc::clone(&self.home)
    }

    /// Asks it to end (SIGTERM), and waits until it has.
    ///
    /// # Panics
    /// If it does not.
    pub fn terminate(mut self) -> (ExitStatus, Arc<Home>) {
        self.signal(Signal::TERM);
        let child = &mut self.child;
        let status = wait_for("the server to end", PATIENCE, || child.try_wait().unwrap());
        self.end();
        (status, Arc::clone(&self.home))
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If there is no such process.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(&mut self) {
        if let Some(mut reaper) = self.reaper.take() {
            let _ = reaper.kill();
            let _ = reaper.wait();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        if thread::panicking() {
            self.log.print();
        }
    }
}

/// A server that several tests use. It is printed from when one of them fails.
#[derive(Debug)]
pub struct Shared(pub &'static Server);

impl std::ops::Deref for Shared {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.log.print();
        }
    }
}

/// What a server says on its standard error.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<String>>);

impl Log {
    /// All of it until now.
    ///
    /// # Panics
    /// If its reader has.
    pub fn text(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap()
    }

    #[allow(
        clippy::print_stderr,
        reason = "the harness shows it with the failed test"
    )]
    fn print(&self) {
        eprintln!("--- the server said:\n{}---", self.text());
    }
}

fn launch(mut command: Command, log: &Log) -> (Child, JoinHandle<()>, SocketAddr) {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let kept = log.clone();
    let reader = thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let _ = writeln!(kept.text(), "{line}");
        }
    });
    let address = wait_for("the server to listen", START, || {
        if let Some(status) = child.try_wait().unwrap() {
            log.print();
            panic!("the server ended with {status}");
        }
        listening(&log.text())
    });
    (child, reader, address)
}

/// The address in the line that says so.
fn listening(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("listening on http://")?;
    let (address, _) = rest.split_once("/mcp")?;
    address.parse().ok()
}
