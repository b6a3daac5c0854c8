//! Measures longshore beside what it is compared with, and prints ratios of one run. `cargo xtask bench` builds and runs it.
//!
//! Owns the command line alone: each part is a module that gives a [`report::Report`]. Nothing is asserted here: a figure is
//! read by people, who know what else the machine did. A part is right or it fails; it is never right and slow at once.

mod call;
mod cancel;
mod chart;
mod counts;
mod durable;
mod growth;
mod inside;
mod isolation;
mod load;
mod measure;
mod memory;
mod parked;
mod reload;
mod report;
mod rivals;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::report::Report;
use crate::rivals::Rival;

/// Measure longshore.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure
    Run(Run),
    /// Count the instructions of the hot paths, and compare them with those that are kept
    Counts {
        /// The file in which they are kept
        file: PathBuf,
        /// Keep what was counted
        #[arg(long)]
        write: bool,
    },
    /// Be the server that longshore is measured against
    #[command(hide = true)]
    Rival { rival: Rival },
    /// Measure runs in this process; JSON to standard output
    #[command(hide = true)]
    Inside,
}

#[derive(Debug, Args)]
struct Run {
    /// Measure these only; without any: all
    parts: Vec<Part>,
    /// How often what is compared is measured in turn; the medians are given
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many tasks wait for an answer
    #[arg(long, default_value_t = 100_000)]
    waiting: usize,
    /// How many tasks have ended
    #[arg(long, default_value_t = 200_000)]
    ended: u64,
    /// Write what was found to this file too
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draw requests a second to this file, as SVG
    #[arg(long)]
    chart: Option<PathBuf>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// A plain call and `tasks/get` over HTTP, beside an echo and the Rust SDK
    Call,
    /// Runs in process, and runs that are made again from a record
    Inside,
    /// Tasks that become durable, beside a file that is appended to and synced
    Durable,
    /// How soon a cancelled guest is gone
    Cancel,
    /// Memory at rest, and of open streams
    Memory,
    /// How cost grows with payload, plugins and streams
    Growth,
    /// Many tasks that wait for an answer, and many that have ended
    Parked,
    /// From a new file to its tools in the list, and the start with a hundred plugins
    Reload,
    /// What guests that compute on all cores leave to others
    Isolation,
}

impl Part {
    fn run(self, arguments: &Run) -> Result<Report> {
        match self {
            Self::Call => call::run(arguments.rounds),
            Self::Inside => inside::run(arguments.rounds),
            Self::Durable => durable::run(arguments.rounds),
            Self::Cancel => cancel::run(arguments.rounds),
            Self::Memory => memory::run(arguments.rounds),
            Self::Growth => growth::run(arguments.rounds),
            Self::Parked => parked::run(arguments.waiting, arguments.ended),
            Self::Reload => reload::run(arguments.rounds),
            Self::Isolation => isolation::run(arguments.rounds),
        }
    }
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Counts { file, write } => counts::run(&file, write),
        Command::Rival { rival } => rivals::serve(rival),
        Command::Inside => inside(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[allow(
    clippy::print_stdout,
    reason = "the figures are for the process that started this one"
)]
fn inside() -> Result<()> {
    println!("{}", inside::measure()?);
    Ok(())
}

#[allow(
    clippy::print_stdout,
    reason = "what was found goes to standard output"
)]
fn run(arguments: &Run) -> Result<()> {
    let parts = match arguments.parts.as_slice() {
        [] => Part::value_variants(),
        parts => parts,
    };
    let mut all = Report::default();
    for part in parts {
        eprintln!("measuring {part:?}");
        all.extend(
            part.run(arguments)
                .with_context(|| format!("measuring {part:?}"))?,
        );
    }
    print!("{all}");
    if let Some(file) = &arguments.json {
        let text = serde_json::to_string_pretty(&all.json())?;
        std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))?;
    }
    if let Some(file) = &arguments.chart {
        chart::draw(&all, file)?;
    }
    Ok(())
}
