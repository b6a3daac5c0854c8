//! Measures what many tasks cost: so many that wait for an answer, made over HTTP, through a kill and a stop, each answered and
//! completed; and so many that have ended, of which any is read as fast as a fresh one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use longshore_tests::archive;
use longshore_tests::client::{Message, accept, answer};
use longshore_tests::server::{FIXTURES, Home, Server};
use longshore_tests::wait::wait_for;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::load::Client;
use crate::measure::{Samples, Stopwatch};
use crate::report::Report;

/// Connections at once: as many as keep two cores busy.
const CONNECTIONS: usize = 32;

/// All tasks have got on by then, or something is stuck.
const ALL_WITHIN: Duration = Duration::from_secs(600);

/// How many ended tasks are read, and how many fresh ones are made to be read beside them.
const READS: usize = 4_000;
const FRESH: usize = 200;

/// Stands for an id in a request.
const SOME_ID: &str = "00112233445566778899aabbccddeeff00112233";

/// So many tasks that wait, then so many that have ended.
///
/// # Errors
/// If a task is lost, or a server does not answer as it must.
pub(crate) fn run(waiting: usize, ended: u64) -> Result<Report> {
    let mut report = wait_and_answer(waiting)?;
    report.extend(read_ended(ended)?);
    Ok(report)
}

fn home(open_max: usize) -> Arc<Home> {
    let config = format!("[tasks]\nttl_ms = 86400000\nopen_per_principal_max = {open_max}\n");
    Arc::new(Home::new(&[FIXTURES], &config))
}

fn wait_and_answer(count: usize) -> Result<Report> {
    let mut report = Report::default();
    let server = Server::start_in(home(count + 1));
    let empty_bytes = count_of(server.memory_bytes());
    let watch = Stopwatch::start();
    let call = Message::call("ask_one", json!({})).tasks().asks();
    let call = call.bytes(server.address());
    let ids = all(server.address(), count, move |_| call.clone(), task_id)?;
    report.figure("parked_create_per_s", rate(count, watch));
    until(&server, &ids, "input_required")?;
    let bytes = count_of(server.memory_bytes());
    report.figure("parked_resident_bytes", bytes);
    let each_bytes = (bytes - empty_bytes) / count_of(count as u64);
    report.figure("parked_resident_per_task_bytes", each_bytes);

    let (server, ms) = start_again(server.kill(), &ids[0])?;
    report.figure("parked_start_after_kill_ms", ms);
    let (status, home) = server.terminate();
    ensure!(status.success(), "the server ended with {status}");
    let (server, ms) = start_again(home, &ids[0])?;
    report.figure("parked_start_ms", ms);
    let bytes = count_of(server.memory_bytes());
    report.figure("parked_start_resident_bytes", bytes);

    until(&server, &ids, "input_required")?;
    let watch = Stopwatch::start();
    answer_all(&server, &ids)?;
    report.figure("parked_answer_per_s", rate(count, watch));
    until(&server, &ids, "completed")?;
    report.figure("parked_completed_per_s", rate(count, watch));
    let bytes = count_of(server.memory_bytes_at_most());
    report.figure("parked_completed_resident_most_bytes", bytes);
    Ok(report)
}

/// From the start of the process to the answer to the first request, in milliseconds.
fn start_again(home: Arc<Home>, id: &str) -> Result<(Server, f64)> {
    let watch = Stopwatch::start();
    let server = Server::start_in(home);
    let get = Request::of_task(&server, "tasks/get", None);
    all(server.address(), 1, get.each(&[id.to_owned()]), status)?;
    Ok((server, watch.ms()))
}

fn answer_all(server: &Server, ids: &[String]) -> Result<()> {
    let answers = answer("number", accept(json!({ "number": 7 })));
    let update = Request::of_task(server, "tasks/update", Some(answers));
    let done = |text: &str| result(text).map(drop);
    all(server.address(), ids.len(), update.each(ids), done).map(drop)
}

/// Until all have come to this; a task that comes to something else is an error.
fn until(server: &Server, ids: &[String], wanted: &'static str) -> Result<()> {
    let get = Request::of_task(server, "tasks/get", None);
    let mut left = ids.to_vec();
    wait_for(wanted, ALL_WITHIN, || {
        let requests = get.each(&left);
        let found = all(
            server.address(),
            left.len(),
            requests,
            move |text| match status(text)?.as_str() {
                status if status == wanted => Ok(None),
                "working" => task_id(text).map(Some),
                other => bail!("a task is {other}: {text}"),
            },
        );
        match found {
            Ok(found) => left = found.into_iter().flatten().collect(),
            Err(error) => return Some(Err(error)),
        }
        left.is_empty().then_some(Ok(()))
    })
}

fn read_ended(count: u64) -> Result<Report> {
    let mut report = Report::default();
    let home = home(FRESH);
    let ids = archive::fill(&home, count);
    let (server, ms) = start_again(home, &ids[0])?;
    report.figure("ended_start_ms", ms);
    let bytes = count_of(server.memory_bytes());
    report.figure("ended_start_resident_bytes", bytes);
    let call = Message::call("sleep_required", json!({ "ms": 0 })).tasks();
    let call = call.bytes(server.address());
    let fresh = all(server.address(), FRESH, move |_| call.clone(), task_id)?;
    until(&server, &fresh, "completed")?;

    let step = (ids.len() / READS).max(1);
    let old: Vec<String> = ids.into_iter().step_by(step).take(READS).collect();
    let get = Request::of_task(&server, "tasks/get", None);
    let runtime = runtime()?;
    let (mut random_us, mut fresh_us) = (Samples::default(), Samples::default());
    runtime.block_on(async {
        let mut client = Client::connect(server.address()).await?;
        // In turn: what disturbs the machine for a while disturbs both.
        for (old, fresh) in old.iter().zip(fresh.iter().cycle()) {
            for (id, samples) in [(old, &mut random_us), (fresh, &mut fresh_us)] {
                let request = get.of(id);
                let watch = Stopwatch::start();
                client.exchange(&request).await?;
                samples.add(watch.us());
            }
        }
        anyhow::Ok(())
    })?;
    report.ratio(
        "ended_get_random_vs_fresh",
        random_us.median() / fresh_us.median(),
    );
    report.figure("ended_get_random_p50_us", random_us.median());
    report.figure("ended_get_random_p99_us", random_us.quantile(0.99));
    report.figure("ended_get_fresh_p50_us", fresh_us.median());
    let bytes = count_of(server.memory_bytes_at_most());
    report.figure("ended_resident_most_bytes", bytes);
    Ok(report)
}

/// A request that is the same for all tasks but for the id.
#[derive(Debug, Clone)]
struct Request {
    bytes: Vec<u8>,
    /// Where the id stands: in a header and in the body.
    places: Vec<usize>,
}

impl Request {
    fn of_task(server: &Server, method: &str, answers: Option<Value>) -> Self {
        let mut message = Message::task(method, SOME_ID);
        if let Some(answers) = answers {
            message = message.param("inputResponses", answers);
        }
        let bytes = message.bytes(server.address());
        let parts = bytes.windows(SOME_ID.len()).enumerate();
        let places = parts.filter(|(_, part)| *part == SOME_ID.as_bytes());
        let places = places.map(|(at, _)| at).collect();
        Self { bytes, places }
    }

    fn of(&self, id: &str) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for &at in &self.places {
            bytes[at..at + SOME_ID.len()].copy_from_slice(id.as_bytes());
        }
        bytes
    }

    fn each(&self, ids: &[String]) -> impl Fn(usize) -> Vec<u8> + Send + Sync + 'static {
        let (request, ids) = (self.clone(), ids.to_vec());
        move |number| request.of(&ids[number])
    }
}

/// Sends so many requests over some connections, and reads the answers; what they say comes back in no order.
fn all<T: Send + 'static>(
    address: SocketAddr,
    count: usize,
    request: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
    read: impl Fn(&str) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>> {
    let (request, read) = (Arc::new(request), Arc::new(read));
    let next = Arc::new(AtomicUsize::new(0));
    runtime()?.block_on(async {
        let mut clients = JoinSet::new();
        for _ in 0..CONNECTIONS.min(count) {
            let mut client = Client::connect(address).await?;
            let (request, read, next) = (request.clone(), read.clone(), next.clone());
            clients.spawn(async move {
                let mut found = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return anyhow::Ok(found);
                    }
                    let answer = client.exchange(&request(number)).await?;
                    found.push(read(std::str::from_utf8(answer)?)?);
                }
            });
        }
        let mut found = Vec::with_capacity(count);
        while let Some(done) = clients.join_next().await {
            found.extend(done??);
        }
        Ok(found)
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().context("a runtime")
}

fn result(text: &str) -> Result<Value> {
    let mut answer: Value = serde_json::from_str(text).context(text.to_owned())?;
    match answer.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => bail!("no result: {text}"),
    }
}

fn member(text: &str, name: &str) -> Result<String> {
    let result = result(text)?;
    let member = result[name].as_str();
    Ok(member
        .with_context(|| format!("no {name}: {text}"))?
        .to_owned())
}

fn task_id(text: &str) -> Result<String> {
    member(text, "taskId")
}

fn status(text: &str) -> Result<String> {
    member(text, "status")
}

#[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn count_of(count: u64) -> f64 {
    count as f64
}

fn rate(count: usize, watch: Stopwatch) -> f64 {
    count_of(count as u64) / watch.elapsed().as_secs_f64()
}
