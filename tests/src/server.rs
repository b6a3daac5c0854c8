//! The real `longshore`, as a process: on a free port, with a home of its own, ended when it is dropped.

use crate::client::{self, Connection, Message, Reply, Stream};
use crate::wait::{PATIENCE, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;

/// The first start compiles its plugins with a debug build, beside other tests.
const START: std::time::Duration = std::time::Duration::from_secs(120);

/// The folder with the workspace's manifest.
fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap().to_owned()
}

/// The binary under test: `LONGSHORE_BIN`, else the debug build.
///
/// # Panics
/// If it is not there; the message says how to build it.
pub fn binary() -> PathBuf {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one setting of the tests: which binary they drive"
    )]
    let path = std::env::var("LONGSHORE_BIN").map_or_else(
        |_| workspace().join("target/debug/longshore"),
        PathBuf::from,
    );
    assert!(
        path.is_file(),
        "there is no {}: run `cargo build`",
        path.display()
    );
    path
}

/// A component by its path below the target folder, such as `guests/versions/a.wasm`.
///
/// # Panics
/// If it is not there; the message says how to build it.
pub fn component(path: &str) -> PathBuf {
    let whole = workspace().join("target").join(path);
    assert!(
        whole.is_file(),
        "there is no {}: run `cargo xtask plugins`",
        whole.display()
    );
    whole
}

/// The well-behaved tools.
pub const FIXTURES: &str = "guests/fixtures/fixtures.wasm";
/// The tools of the official suite.
pub const CONFORMANCE: &str = "guests/conformance/conformance.wasm";
/// The tools that misbehave.
pub const HOSTILE: &str = "guests/hostile/hostile.wasm";
/// The tool `version`, which answers `a`.
pub const VERSION_A: &str = "guests/versions/a.wasm";
/// The same tool, which answers `b`.
pub const VERSION_B: &str = "guests/versions/b.wasm";

/// A home: config, plugins and data. It outlives the process, so that a server can be started again in it.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
}

impl Home {
    /// A home with these components, each named by its file stem, and these settings (TOML).
    ///
    /// # Panics
    /// If a component is not built.
    pub fn new(components: &[&str], config: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("longshore-")
            .tempdir()
            .unwrap();
        let home = Self { folder };
        fs::create_dir(home.plugins()).unwrap();
        for path in components {
            home.install(path);
        }
        home.configure(config);
        home
    }

    /// Replaces the settings. All servers of the tests share one compile cache.
    pub fn configure(&self, config: &str) {
        let cache = workspace().join("target/compile-cache");
        let whole = format!("compile_cache_dir = {cache:?}\n{config}\n");
        fs::write(self.config(), whole).unwrap();
    }

    /// The config file.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("longshore.toml")
    }

    /// The folder of the plugins.
    pub fn plugins(&self) -> PathBuf {
        self.folder.path().join("plugins")
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Copies a component in, under the name of its file.
    pub fn install(&self, path: &str) {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        self.install_as(name, &fs::read(component(path)).unwrap());
    }

    /// Puts a file in at once, or in the place of the one that is there.
    pub fn install_as(&self, name: &str, bytes: &[u8]) {
        let part = self.folder.path().join("part");
        fs::write(&part, bytes).unwrap();
        fs::rename(&part, self.plugins().join(name)).unwrap();
    }

    /// The command that serves this home on a free port.
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("serve")
            .args(["--listen", "127.0.0.1:0"])
            .arg("--config")
            .arg(self.config())
            .arg("--plugins")
            .arg(self.plugins())
            .arg("--data")
            .arg(self.data());
        command
    }
}

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
    /// Starts one with these components and settings.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub fn start(components: &[&str], config: &str) -> Self {
        Self::start_in(Arc::new(Home::new(components, config)))
    }

    /// Starts one in this home.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub fn start_in(home: Arc<Home>) -> Self {
        let log = Log::default();
        let (child, reader, address) = launch(&home, &log);
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
            .arg(self.home.folder.path())
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
        let id = id.to_owned();
        Task { server: self, id }
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

fn launch(home: &Home, log: &Log) -> (Child, JoinHandle<()>, SocketAddr) {
    let mut command = home.command();
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

/// A task of a server.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    server: &'a Server,
    /// Its id.
    pub id: String,
}

impl Task<'_> {
    /// Its handle is known; what is it now?
    pub fn get(&self) -> Value {
        let reply = self.server.send(&Message::task("tasks/get", &self.id));
        let result = reply.result();
        assert_eq!(result["taskId"], self.id.as_str());
        result.clone()
    }

    /// Answers questions.
    pub fn update(&self, answers: Value) -> Reply {
        let message = Message::task("tasks/update", &self.id);
        self.server.send(&message.param("inputResponses", answers))
    }

    /// Wishes it to end.
    pub fn cancel(&self) -> Reply {
        self.server.send(&Message::task("tasks/cancel", &self.id))
    }

    /// Waits until it has this status.
    ///
    /// # Panics
    /// If it comes to another end, or to none in time.
    pub fn wait(&self, status: &str) -> Value {
        wait_for(&format!("status {status}"), PATIENCE, || {
            let task = self.get();
            let now = task["status"].as_str().unwrap();
            let over = ["completed", "failed", "cancelled"].contains(&now);
            assert!(now == status || !over, "not {status}: {task:#}");
            (now == status).then_some(task)
        })
    }

    /// Waits for its questions: their keys, in order.
    pub fn wait_questions(&self) -> Vec<String> {
        let task = self.wait("input_required");
        let asked = task["inputRequests"].as_object().unwrap();
        asked.keys().cloned().collect()
    }

    /// Waits until it is asked by this key, and answers.
    pub fn answer(&self, key: &str, answer: Value) {
        wait_for(&format!("question {key}"), PATIENCE, || {
            let task = self.wait("input_required");
            task["inputRequests"].get(key).map(|_| ())
        });
        self.update(client::answer(key, answer)).result();
    }

    /// Waits for its result: the first text.
    pub fn wait_text(&self) -> String {
        let task = self.wait("completed");
        client::text_of(&task["result"]).to_owned()
    }
}
