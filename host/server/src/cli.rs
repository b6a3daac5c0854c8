//! The command line.

use crate::app::{self, COMPILE_COMMAND};
use crate::config::{Config, Flags};
use crate::logs::{self, LastLines};
use crate::store_command::StoreCommand;
use crate::{auth, inspect};
use clap::{Args, Parser, Subcommand};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
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
    /// Look at one plugin.
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
}

#[derive(Debug, Args)]
struct ServeArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Where to listen [default: 127.0.0.1:7777].
    #[arg(long, value_name = "ADDR")]
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
}

impl PlaceArgs {
    /// What they and the file say. From here on there is a log, until what comes second is dropped.
    fn load(self, listen: Option<SocketAddr>) -> anyhow::Result<(Config, LastLines)> {
        let flags = Flags {
            listen,
            plugins_dir: self.plugins,
            data_dir: self.data,
        };
        let config = Config::load(self.config.as_deref(), flags)?;
        let log = logs::init(&config);
        Ok((config, log))
    }
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
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
    /// Load a plugin as the server would, and say why if it cannot be served.
    Check {
        /// A component.
        file: PathBuf,
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
        Command::Serve(args) => args
            .place
            .load(args.listen)
            .and_then(|(config, _log)| block_on(app::serve_http(config))),
        Command::Stdio(place) => place
            .load(None)
            .and_then(|(config, _log)| block_on(app::serve_stdio(config))),
        Command::Token { principal } => token(&principal),
        Command::Store(command) => block_on(command.run()),
        Command::Plugin(PluginCommand::Inspect { file, json, config }) => {
            block_on(inspect::inspect(&file, config.as_deref(), json)).and_then(|text| print(&text))
        }
        Command::Plugin(PluginCommand::Check { file, config }) => {
            block_on(inspect::check(&file, config.as_deref())).and_then(|text| print(&text))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longshore: {error:#}");
            ExitCode::FAILURE
        }
    }
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
        .enable_all()
        .build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_WORK);
    done
}

fn print(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").map_err(Into::into)
}
