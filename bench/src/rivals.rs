//! Owns the servers that longshore is measured against: one that only echoes, and one of the official Rust SDK whose tool is
//! native code.
//!
//! Each is a process of its own, as longshore is: this program, started again with the name of the rival.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use clap::ValueEnum;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};
use tokio::net::TcpListener;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rival {
    /// Axum alone: the body of the request is the body of the answer.
    Echo,
    /// The `rmcp` crate with the tool `echo`, in the fastest of its settings: no sessions, plain JSON answers.
    Rmcp,
}

/// A rival that listens. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Where.
    pub(crate) address: SocketAddr,
}

impl Running {
    /// Start it, and wait until it listens.
    ///
    /// # Errors
    /// If it does not come up.
    pub(crate) fn start(rival: Rival) -> Result<Self> {
        let name = rival.to_possible_value().context("a rival has a name")?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["rival", name.get_name()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().context("its output is a pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line
            .trim()
            .parse()
            .with_context(|| format!("its address: {line:?}"))?;
        Ok(Self { child, address })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Be this server, until the process is ended.
///
/// # Errors
/// If it cannot listen.
#[allow(
    clippy::print_stdout,
    reason = "the address is for the process that started this one"
)]
pub(crate) fn serve(rival: Rival) -> Result<()> {
    // As many threads as there are cores, as longshore has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let router = match rival {
            Rival::Echo => Router::new().route("/mcp", post(echo)),
            Rival::Rmcp => Router::new().nest_service("/mcp", native()),
        };
        axum::serve(listener, router).await?;
        Ok(())
    })
}

async fn echo(body: Bytes) -> ([(axum::http::HeaderName, &'static str); 1], Bytes) {
    ([(CONTENT_TYPE, "application/json")], body)
}

fn native() -> StreamableHttpService<Native, LocalSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None);
    StreamableHttpService::new(|| Ok(Native), Default::default(), config)
}

/// The same tool as the plugin has.
#[derive(Debug, Clone)]
struct Native;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say.
    text: String,
}

#[tool_router]
impl Native {
    #[tool(description = "Says what it is told.")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }
}

#[tool_handler]
impl ServerHandler for Native {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}
