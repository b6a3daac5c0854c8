//! Owns `cargo xtask up`: from a checkout to a server that answers, and what to type next.

use std::thread;

use anyhow::{Result, ensure};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::host::{self, Host, Log, Profile};
use crate::{guests, toolchain};

const PLUGINS: &str = "target/plugins";
/// Beside the build outputs and not `data`: what is tried out here is no one's real data.
const DATA: &str = "target/up-data";
const VERSION: &str = "2026-07-28";

/// Build, serve, and stay until Ctrl-C.
///
/// # Errors
/// If something does not build, or the host does not end well.
pub(crate) fn up(listen: &str) -> Result<()> {
    // The others need node and Python, and a first start that compiles their engines for half a minute.
    guests::build(&[guests::Language::Rust], toolchain::Choice::Any)?;
    let binary = host::build(Profile::Release)?;
    // Before the host is started: a signal that comes in between is kept, not lost.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let arguments = ["--listen", listen, "--plugins", PLUGINS, "--data", DATA];
    let mut host = Host::start(&binary, &arguments, Log::Shown)?;
    println!("{}", greeting(&host.url));
    let pid = host.pid();
    let handle = signals.handle();
    let forward = thread::spawn(move || {
        for number in signals.forever() {
            let signal = if number == SIGINT {
                Signal::INT
            } else {
                Signal::TERM
            };
            // It may have ended just now; that is what was wanted.
            let _ = kill_process(pid, signal);
        }
    });
    let status = host.wait()?;
    handle.close();
    let _ = forward.join();
    ensure!(status.success(), "the host ended badly: {status}");
    println!("the host has ended; its data is in {DATA}");
    Ok(())
}

fn greeting(url: &str) -> String {
    let list = curl(url, "tools/list", json!({}));
    let call = curl(
        url,
        "tools/call",
        json!({"name": "text_stats", "arguments": {"text": "a ship in the harbour"}}),
    );
    format!(
        "\nLongshore serves {PLUGINS} at {url}; its data is in {DATA}.\n\
         Drop a component into {PLUGINS} and its tools appear. Ctrl-C ends it.\n\n\
         # list the tools\n{list}\n\n# call one\n{call}\n"
    )
}

/// A request that can be typed as it stands.
fn curl(url: &str, method: &str, mut params: Value) -> String {
    let name = params["name"]
        .as_str()
        .map_or_else(String::new, |name| format!(" \\\n  -H 'Mcp-Name: {name}'"));
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    format!(
        "curl -sS -w '\\n' {url} \\\n  \
         -H 'Content-Type: application/json' \\\n  \
         -H 'Accept: application/json, text/event-stream' \\\n  \
         -H 'MCP-Protocol-Version: {VERSION}' \\\n  \
         -H 'Mcp-Method: {method}'{name} \\\n  \
         -d '{body}'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_tool_in_header_and_body() {
        let line = curl(
            "http://h/mcp",
            "tools/call",
            json!({"name": "t", "arguments": {}}),
        );
        assert!(line.contains("'Mcp-Name: t'"), "{line}");
        assert!(line.contains(r#""name":"t""#), "{line}");
        assert!(!curl("http://h/mcp", "tools/list", json!({})).contains("Mcp-Name"));
        assert!(!greeting("http://h/mcp").contains("'\\''"));
    }
}
