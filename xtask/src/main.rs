//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! Owns the command line alone. Each command is a module; none of them links the host, so that this
//! program is built in seconds on a bare machine.

#![allow(
    clippy::print_stdout,
    reason = "what a command has to say goes to standard output"
)]

mod bench;
mod checks;
mod clients;
mod clock;
mod conformance;
mod crash;
mod debian;
mod fuzz;
mod guests;
mod host;
mod node;
mod place;
mod process;
mod scenarios;
mod scripted;
mod strangers;
mod suite;
mod toolchain;
mod tools;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build everything, serve the example plugins, and say how to call them
    Up {
        /// The address to serve
        #[arg(long, default_value = "127.0.0.1:7777")]
        listen: String,
    },
    /// Build the example plugins and the test guests
    Plugins {
        /// Build those in these languages only, comma-separated
        #[arg(long, value_delimiter = ',', value_enum)]
        only: Vec<guests::Language>,
        /// Which compiler builds those in Rust
        #[arg(long, value_enum, default_value_t)]
        toolchain: toolchain::Choice,
    },
    /// Install the clients in other languages that the tests drive
    Clients,
    /// Run every check, in order, up to the first that fails
    Test {
        /// Run these checks only, by name, comma-separated
        #[arg(long, value_delimiter = ',', value_enum)]
        only: Vec<checks::Check>,
    },
    /// Measure the host beside what it is compared with (`-- --help`: what can be measured)
    Bench {
        /// What to measure, `--rounds N`, `--json FILE`; all by default
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Count the instructions of the hot paths, and compare them with those that are kept in `bench/counts.json`
    Counts {
        /// Keep what was counted
        #[arg(long)]
        write: bool,
    },
    /// Kill the host under traffic again and again, and check what it had acknowledged
    Crash {
        /// How many times
        #[arg(long, default_value_t = 1000)]
        rounds: u32,
    },
    /// Look for inputs that break the reading of the wire, and for guests that break the host
    Fuzz(fuzz::Arguments),
    /// Run the official conformance suite against the host
    Conformance(conformance::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Up { listen } => up::up(&listen),
        Command::Plugins { only, toolchain } => guests::build(&only, toolchain),
        Command::Clients => clients::ready(),
        Command::Test { only } => checks::run(&only),
        Command::Bench { arguments } => bench::run(&arguments),
        Command::Counts { write } => bench::counts(write),
        Command::Crash { rounds } => crash::run(rounds),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Conformance(arguments) => conformance::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The causes alone: where in this program it was noticed helps nobody.
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}
