//! Tools that reach for what is outside: files, variables and hosts. They do what they are told; what they may is the host's
//! to say.

use longshore_plugin::{Result, confirm, http, progress};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::io::{Seek, Write};
use std::thread;
use std::time::Duration;

/// Reads or changes a path.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AtPath {
    path: String,
    /// What is written, or where to.
    #[serde(default)]
    text: String,
}

/// Reads a path.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Cat {
    path: String,
    /// What it waits before that.
    #[serde(default)]
    after_ms: u64,
}

pub(crate) fn cat(args: Cat) -> Result<String> {
    thread::sleep(Duration::from_millis(args.after_ms));
    Ok(fs::read_to_string(args.path)?)
}

pub(crate) fn ls(args: AtPath) -> Result<Value> {
    let mut names = Vec::new();
    for entry in fs::read_dir(args.path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(json!({ "names": names }))
}

pub(crate) fn write(args: AtPath) -> Result<&'static str> {
    fs::write(args.path, args.text)?;
    Ok("written")
}

/// Writes the same text twice, at the same place.
pub(crate) fn rewrite(args: AtPath) -> Result<&'static str> {
    let mut file = fs::File::create(args.path)?;
    for _ in 0..2 {
        file.rewind()?;
        file.write_all(args.text.as_bytes())?;
    }
    Ok("written")
}

/// Makes a file larger than what is in it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Stretch {
    path: String,
    bytes: u64,
}

pub(crate) fn stretch(args: Stretch) -> Result<&'static str> {
    fs::File::create(args.path)?.set_len(args.bytes)?;
    Ok("stretched")
}

/// Every way to change something, each tried.
pub(crate) fn change(args: AtPath) -> Value {
    let path = &args.path;
    let told = |result: std::io::Result<()>| result.map_err(|error| error.to_string());
    json!({
        "write": told(fs::write(format!("{path}/new"), "x")),
        "append": told(fs::File::options().append(true).open(format!("{path}/note.txt")).and_then(|mut file| file.write_all(b"x"))),
        "truncate": told(fs::File::options().write(true).open(format!("{path}/note.txt")).and_then(|file| file.set_len(0))),
        "mkdir": told(fs::create_dir(format!("{path}/made"))),
        "rename": told(fs::rename(format!("{path}/note.txt"), format!("{path}/other.txt"))),
        "link": told(fs::hard_link(format!("{path}/note.txt"), format!("{path}/linked.txt"))),
        "remove": told(fs::remove_file(format!("{path}/note.txt"))),
        "rmdir": told(fs::remove_dir(format!("{path}/folder"))),
    })
}

/// Writes, then asks, then tells what it wrote before.
pub(crate) fn write_then_ask(args: AtPath) -> Result<String> {
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(&args.path)?;
    writeln!(file, "{}", args.text)?;
    progress(1.0, None, "written");
    let yes = confirm("Is it well?")?;
    Ok(format!("{yes}: {}", fs::read_to_string(args.path)?))
}

/// Writes once and waits.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WriteAndWait {
    path: String,
    ms: u64,
}

pub(crate) fn write_and_wait(args: WriteAndWait) -> Result<&'static str> {
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(&args.path)?;
    writeln!(file, "once")?;
    thread::sleep(Duration::from_millis(args.ms));
    Ok("waited")
}

/// Tells a variable.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct VariableName {
    name: String,
}

pub(crate) fn print_variable(args: VariableName) -> String {
    let value = std::env::var(&args.name).unwrap_or_default();
    println!("{} is {value}", args.name);
    eprintln!("again: {value}{value}");
    longshore_plugin::log::info(format!("logged {value}"));
    format!("printed {} characters", value.len())
}

/// Sends a request.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Send {
    url: String,
    #[serde(default = "get")]
    method: String,
    /// Size of the body.
    #[serde(default)]
    body_bytes: usize,
    /// How many times, one after the other.
    #[serde(default = "once")]
    times: u32,
    /// Redirects that are followed.
    #[serde(default)]
    follow: u32,
}

fn get() -> String {
    "GET".into()
}

fn once() -> u32 {
    1
}

pub(crate) fn send(args: Send) -> Result<Value> {
    let mut url = args.url.clone();
    let mut follow = args.follow;
    let mut done = 0;
    loop {
        let request = http::request(args.method.as_str(), url.as_str());
        let response = request.body(vec![b'x'; args.body_bytes]).send()?;
        let location = response.headers.iter().find(|(name, _)| name == "location");
        if let Some((_, location)) = location
            && follow > 0
        {
            follow -= 1;
            url = String::from_utf8_lossy(location).into_owned();
            continue;
        }
        done += 1;
        if done >= args.times {
            return Ok(json!({
                "status": response.status,
                "bytes": response.body.len(),
                "text": String::from_utf8_lossy(&response.body[..response.body.len().min(200)]),
            }));
        }
    }
}

pub(crate) fn send_then_ask(args: Send) -> Result<String> {
    let response = http::get(args.url).send()?;
    let yes = confirm("Is it well?")?;
    Ok(format!("{yes}: {}", response.status))
}

/// Connects without HTTP.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Connect {
    address: String,
}

pub(crate) fn connect(args: Connect) -> Result<&'static str> {
    std::net::TcpStream::connect(args.address)?;
    Ok("connected")
}

pub(crate) fn listen() -> Result<String> {
    Ok(format!("{:?}", std::net::TcpListener::bind("127.0.0.1:0")?))
}
