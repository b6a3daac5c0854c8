//! The command line.

use crate::admin::{self, Order};
use crate::app::{self, COMPILE_COMMAND};
use crate::config::{Config, Flags, parse_address};
use crate::logs::{self, LastLines};
use crate::schema::{self, CHECK_COMMAND};
use crate::store_command::StoreCommand;
use crate::{auth, inspect};
use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long what blocks may still take when all else has ended: a compiler that is being killed, say.
const LAST_WORK: Duration = Duration::from_secs(1);

/// Runs untrusted WebAssembly plugins as MCP tools.
#[derive(Debug, Parser)]
#[command(name = "longshore", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the plugins of a directory over HTTP.
    Serve(ServeArgs),
    /// Serve the plugins of a directory to the one client at standard input and output.
    Stdio(PlaceArgs),
    /// Make a token for a caller, and the lines of the configuration that let it in.
    Token {
        /// Who gets it.
        principal: String,
    },
    /// Look at a plugin, or say which of its versions is served.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Look at the tasks of a stopped server.
    #[command(subcommand)]
    Store(StoreCommand),
    /// Compile a component from standard input to standard output.
    #[command(name = COMPILE_COMMAND, hide = true)]
    Compile {
        /// Address space, in bytes.
        memory_bytes: u64,
        /// Time, in seconds of one core.
        cpu_s: u64,
    },
    /// Check a value against a schema, both from standard input.
    #[command(name = CHECK_COMMAND, hide = true)]
    Check {
        /// Address space, in bytes.
        memory_bytes: u64,
        /// Time, in seconds of one core.
        cpu_s: u64,
    },
}

#[derive(Debug, Args)]
struct ServeArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Where to listen [default: 127.0.0.1:7777].
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,
}

#[derive(Debug, Args)]
struct PlaceArgs {
    /// The configuration, in TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory of the plugins [default: ./plugins].
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// The directory of tasks, keys and components [default: ./data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// For the author of a plugin: changes show sooner, and the log is for the terminal.
    #[arg(long)]
    dev: bool,
}

impl PlaceArgs {
    /// What they and the file say. From here on there is a log, until what comes second is dropped.
    fn load(self, listen: Option<SocketAddr>) -> anyhow::Result<(Config, LastLines)> {
        let flags = Flags {
            listen,
            dev: self.dev,
            plugins_dir: self.plugins,
            data_dir: self.data,
        };
        let config = Config::load(self.config.as_deref(), flags)?;
        let log = logs::init(&config);
        Ok((config, log))
    }
}

/// Which running server is meant.
#[derive(Debug, Args)]
struct ServerArgs {
    /// Its configuration, in TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Its data folder [default: ./data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl ServerArgs {
    fn order(self, order: &Order) -> anyhow::Result<Value> {
        let flags = Flags {
            data_dir: self.data,
            ..Flags::default()
        };
        let config = Config::load(self.config.as_deref(), flags)?;
        admin::order(&config.data_dir, order)
    }
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// Say how the plugins of a running server stand: what is served, and what is not, and why.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Say which versions of a plugin a running server has served.
    History {
        /// The plugin: its file's name without .wasm.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Serve an earlier version of a plugin, until its file changes to yet another one or is approved.
    Rollback {
        /// The plugin: its file's name without .wasm.
        name: String,
        /// The beginning of the version [default: the one before the present one].
        version: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Serve what is in a plugin's file, though it was rolled back or its definitions are pinned and have changed.
    Approve {
        /// The plugin: its file's name without .wasm.
        name: String,
        /// The beginning of the version that you looked at: any other is not approved.
        version: Option<String>,
        /// Only show what would change.
        #[arg(long)]
        show: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Say what a plugin is: version, imports, exports, tools.
    Inspect {
        /// A component.
        file: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
        /// The configuration, in TOML: its limits and its compile cache are used.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Load plugins as the server would, and say why if one cannot be served.
    Check {
        /// Components.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The configuration, in TOML: its limits and its compile cache are used.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// Do what the command line says.
pub fn run() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Compile {
            memory_bytes,
            cpu_s,
        } => {
            return longshore_runtime::child_main(memory_bytes, cpu_s);
        }
        Command::Check {
            memory_bytes,
            cpu_s,
        } => return schema::child_main(memory_bytes, cpu_s),
        Command::Serve(args) => args
            .place
            .load(args.listen)
            .and_then(|(config, _log)| block_on(app::serve_http(config))),
        Command::Stdio(place) => place
            .load(None)
            .and_then(|(config, _log)| block_on(app::serve_stdio(config))),
        Command::Token { principal } => token(&principal),
        Command::Store(command) => block_on(command.run()),
        Command::Plugin(command) => plugin(command).and_then(|text| print(&text)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longshore: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn plugin(command: PluginCommand) -> anyhow::Result<String> {
    match command {
        PluginCommand::Inspect { file, json, config } => {
            block_on(inspect::inspect(&file, config.as_deref(), json))
        }
        PluginCommand::Check { files, config } => check(&files, config.as_deref()),
        PluginCommand::List { json, server } => {
            told(&server.order(&Order::List)?, json, admin::list_text)
        }
        PluginCommand::History { name, json, server } => {
            let history = server.order(&Order::History { plugin: name })?;
            told(&history, json, admin::history_text)
        }
        PluginCommand::Rollback {
            name: plugin,
            version,
            server,
        } => served(&server.order(&Order::Rollback { plugin, version })?),
        PluginCommand::Approve {
            name,
            show: true,
            server,
            ..
        } => {
            let changes = admin::changes_text(&server.order(&Order::List)?, &name);
            changes.with_context(|| {
                let name = admin::plain_text(&name);
                format!("no version of {name} is withheld")
            })
        }
        PluginCommand::Approve {
            name: plugin,
            version,
            server,
            ..
        } => served(&server.order(&Order::Approve { plugin, version })?),
    }
}

/// What is good is told also when something else is not.
fn check(files: &[PathBuf], config: Option<&Path>) -> anyhow::Result<String> {
    let (good, bad) = block_on(inspect::check(files, config))?;
    if bad.is_empty() {
        return Ok(good.join("\n"));
    }
    if !good.is_empty() {
        print(&good.join("\n"))?;
    }
    anyhow::bail!(bad.join("\n"))
}

fn told(answer: &Value, json: bool, text: fn(&Value) -> String) -> anyhow::Result<String> {
    if json {
        return Ok(serde_json::to_string_pretty(answer)?);
    }
    Ok(text(answer))
}

fn served(answer: &Value) -> anyhow::Result<String> {
    let text = |name: &str| admin::plain_text(answer[name].as_str().unwrap_or_default());
    Ok(format!(
        "{} {} is served now",
        text("name"),
        text("version")
    ))
}

/// The lines for the configuration go to standard output, the token beside it: so the one can be appended to the file, and the
/// other is not.
fn token(principal: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        auth::is_principal(principal),
        "{principal:?} cannot be a principal; it must be {}",
        auth::PRINCIPAL_RULE
    );
    let (token, sha256) = auth::new_token()?;
    let named = toml::Value::from(principal);
    print(&format!(
        "\n[[auth.tokens]]\nprincipal = {named}\nsha256 = \"{sha256}\""
    ))?;
    eprintln!(
        "The token, for {principal} alone; it is not kept anywhere:\n{token}\nAppend the lines on standard output to the configuration, and restart the server."
    );
    Ok(())
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(protocol_threads())
        .enable_all()
        .build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_WORK);
    done
}

/// One for two cores. Guests have a thread for each, and theirs is the larger part of a call: with as many for the protocol the
/// two kinds wake and displace each other, and two cores served a sixth fewer calls.
fn protocol_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

fn print(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").map_err(Into::into)
}
