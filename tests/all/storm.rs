//! Mixed traffic, and the process killed at a random moment, again and again: every fact that a client was told holds after the
//! next start. `cargo xtask crash --rounds N` runs it for longer.

use longshore_tests::client::{Connection, Message, accept, answer, text_of};
use longshore_tests::server::{FIXTURES, HOSTILE, Server};
use longshore_tests::wait::{PATIENCE, Watch, wait_for};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The environment variable with the number of rounds.
const ROUNDS: &str = "LONGSHORE_TESTS_CRASH_ROUNDS";

#[allow(
    clippy::disallowed_methods,
    reason = "the one setting of this test: how long it goes on"
)]
fn rounds() -> u64 {
    let stated = std::env::var(ROUNDS).ok();
    stated.map_or(50, |text| text.parse().expect("a number of rounds"))
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

/// What a client was told of a task.
#[derive(Clone, Debug)]
enum Fact {
    /// It exists.
    Handle,
    /// Its answer was taken: it ends with this text.
    Answered(String),
    /// The wish to end was taken.
    Cancelled,
    /// It has ended, like this.
    Ended(Value),
    /// It writes to this file, once.
    Effect(PathBuf),
    /// Nobody answers it: it fails when its time is over. Since when it lives.
    Doomed(Watch),
}

/// Life of a task: longer than any start takes, so that what can end does, and shorter than the test.
const TTL: Duration = Duration::from_secs(20);

type Facts = Vec<(String, Fact)>;

/// One client, until its server is gone.
struct Client<'a> {
    connection: Connection,
    dice: Dice,
    folder: &'a Path,
    /// Tells the files of its effects apart.
    name: String,
    facts: Facts,
}

impl Client<'_> {
    /// What was told until the server was gone. What was under way then was not acknowledged.
    fn work(mut self) -> Facts {
        for number in 0.. {
            if self.one(number).is_none() {
                break;
            }
        }
        self.facts
    }

    /// `None`: the server is gone.
    fn one(&mut self, number: u64) -> Option<()> {
        match self.dice.roll(6) {
            0 => {
                let ms = self.dice.roll(120);
                self.create("sleep_required", json!({ "ms": ms }))?;
            }
            1 => {
                let id = self.create("ask_one", json!({}))?;
                // What nobody has asked for is taken and left alone.
                while self.ask(&Message::task("tasks/get", &id))?["status"] == "working" {}
                let given = answer("number", accept(json!({ "number": number })));
                let update = Message::task("tasks/update", &id).param("inputResponses", given);
                self.acknowledged(&update)?;
                let text = format!("the number is {number}");
                self.facts.push((id, Fact::Answered(text)));
            }
            2 => {
                let id = self.create("sleep_required", json!({ "ms": 60_000 }))?;
                self.acknowledged(&Message::task("tasks/cancel", &id))?;
                self.facts.push((id, Fact::Cancelled));
            }
            3 => {
                let file = format!("{}-{number}", self.name);
                let path = format!("/effects/{file}");
                let id = self.create("write_and_wait", json!({ "path": path, "ms": 60 }))?;
                let file = self.folder.join(file);
                self.facts.push((id, Fact::Effect(file)));
            }
            4 => {
                let id = self.create("ask_one", json!({}))?;
                self.facts.push((id, Fact::Doomed(Watch::start())));
            }
            _ => {
                let at = self.dice.roll(self.facts.len().max(1) as u64);
                let Some((id, _)) = self.facts.get(usize::try_from(at).unwrap()) else {
                    return Some(());
                };
                let id = id.clone();
                let task = self.ask(&Message::task("tasks/get", &id))?;
                if is_over(&task) {
                    self.facts.push((id, Fact::Ended(end_of(&task))));
                }
            }
        }
        Some(())
    }

    fn create(&mut self, tool: &str, arguments: Value) -> Option<String> {
        let message = Message::call(tool, arguments).tasks().asks();
        let id = self.ask(&message)?["taskId"].as_str()?.to_owned();
        self.facts.push((id.clone(), Fact::Handle));
        Some(id)
    }

    fn acknowledged(&mut self, message: &Message) -> Option<()> {
        self.ask(message).map(drop)
    }

    fn ask(&mut self, message: &Message) -> Option<Value> {
        let reply = self.connection.exchange(message).ok()?;
        Some(reply.result().clone())
    }
}

fn is_over(task: &Value) -> bool {
    ["completed", "failed", "cancelled"].contains(&task["status"].as_str().unwrap())
}

/// What must not change any more.
fn end_of(task: &Value) -> Value {
    json!([task["status"], task["result"], task["error"]])
}

/// Some clients at once, until the server is killed.
fn storm(address: SocketAddr, folder: &Path, round: u64, kill: impl FnOnce()) -> Facts {
    let told = Mutex::new(Facts::new());
    thread::scope(|scope| {
        for client in 0..3 {
            let told = &told;
            scope.spawn(move || {
                let Ok(connection) = Connection::open(address) else {
                    return;
                };
                let client = Client {
                    connection,
                    dice: Dice(round * 3 + client),
                    folder,
                    name: format!("{round}-{client}"),
                    facts: Facts::new(),
                };
                let facts = client.work();
                told.lock().unwrap().extend(facts);
            });
        }
        let moment = 20 + Dice(!round).roll(300);
        thread::sleep(Duration::from_millis(moment));
        kill();
    });
    told.into_inner().unwrap()
}

/// Every fact holds.
fn check(server: &Server, facts: &Facts) {
    for (id, fact) in facts {
        let task = server.task(id);
        let over = || {
            wait_for("the task to end", PATIENCE, || {
                let now = task.get();
                is_over(&now).then_some(now)
            })
        };
        match fact {
            // It may wait for its answer.
            Fact::Handle => drop(task.get()),
            Fact::Answered(text) => {
                let ended = over();
                assert_eq!(ended["status"], "completed", "{ended:#}");
                assert_eq!(text_of(&ended["result"]), text);
            }
            // Its clock began a moment before ours: it may be over by now.
            Fact::Doomed(since) if since.elapsed() < TTL => {
                let now = task.get();
                let due = ["input_required", "working", "failed"];
                assert!(due.contains(&now["status"].as_str().unwrap()), "{now:#}");
            }
            Fact::Doomed(_) => {
                let ended = over();
                assert_eq!(ended["status"], "failed", "{ended:#}");
                assert_eq!(ended["error"]["data"]["reason"], "expired", "{ended:#}");
            }
            Fact::Cancelled => assert_eq!(over()["status"], "cancelled"),
            Fact::Ended(end) => assert_eq!(end_of(&task.get()), *end),
            Fact::Effect(file) => {
                let ended = over();
                let written = fs::read_to_string(file).unwrap_or_default();
                let done = ended["status"] == "completed";
                assert!(
                    written == "once\n" || (written.is_empty() && !done),
                    "{written:?} {ended:#}"
                );
            }
        }
    }
}

/// Ends what nobody waits for: it would begin again at each start.
fn tidy(server: &Server, facts: &Facts) {
    for (id, _) in facts {
        let mut told = facts.iter().filter(|(other, _)| other == id);
        if told.all(|(_, fact)| matches!(fact, Fact::Handle)) {
            server.task(id).cancel().result();
        }
    }
}

#[test]
fn s01_whatever_was_acknowledged_holds_after_a_kill_at_any_moment() {
    let folder = TempDir::new().unwrap();
    let effects = folder.path().to_owned();
    let ttl_ms = TTL.as_millis();
    let config = format!(
        "[tasks]\ngrace_ms = 0\nttl_ms = {ttl_ms}\nkeep_ms = 86400000\n[plugins.hostile.grants]\ndirectories = [{{ host = {effects:?}, guest = \"/effects\", write = true }}]\n[plugins.hostile.tools.write_and_wait]\ntask_support = \"required\"\n"
    );
    let mut server = Server::start(&[FIXTURES, HOSTILE], &config);
    let (mut facts, mut starts) = (Facts::new(), Vec::new());
    for round in 0..rounds() {
        let address = server.address();
        let pid = server.pid();
        let new = storm(address, &effects, round, || {
            let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        });
        let watch = Watch::start();
        server = Server::start_in(server.kill());
        starts.push(watch.elapsed());
        check(&server, &new);
        tidy(&server, &new);
        // And some of what was told long ago.
        let older = Dice(round).roll(facts.len().max(1) as u64);
        let older = facts.iter().skip(usize::try_from(older).unwrap()).take(5);
        check(&server, &older.cloned().collect());
        facts.extend(new);
        if (round + 1) % REPORTED_EVERY == 0 {
            report(&facts, &starts);
        }
    }
    // The end of those whose time came; some are read again, and all are there.
    let last = facts.iter().rev().take(1_000);
    check(&server, &last.cloned().collect());
    report(&facts, &starts);
    assert!(facts.len() > starts.len(), "nothing was told");
}

/// How many rounds pass until someone who looks sees that it goes on.
const REPORTED_EVERY: u64 = 100;

#[allow(clippy::print_stdout, reason = "seen with --nocapture")]
fn report(facts: &Facts, starts: &[Duration]) {
    let over =
        |(_, fact): &&(String, Fact)| matches!(fact, Fact::Doomed(since) if since.elapsed() >= TTL);
    let mut sorted = starts.to_vec();
    sorted.sort();
    println!(
        "{} rounds, {} facts hold, {} of them of tasks whose time is over; start after a kill: median {} ms, longest {} ms",
        starts.len(),
        facts.len(),
        facts.iter().filter(over).count(),
        sorted[sorted.len() / 2].as_millis(),
        sorted[sorted.len() - 1].as_millis(),
    );
}
