//! Owns the compiler for guests in Rust: which one is there, and how a missing one is had.
//!
//! The usual one is rustup's `wasm32-wasip2` target. Where rustup cannot download, Debian's
//! packages build the same target, with the standard library compiled from its source.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{debian, place, process};

/// What guests are compiled for.
pub(crate) const TARGET: &str = "wasm32-wasip2";

const PACKAGES: [&str; 5] = [
    "rustc-web",
    "rust-web-src",
    "cargo-web",
    "lld-19",
    "wasi-libc",
];
const LINKER: &str = "wasm-component-ld";
const LINKER_VERSION: &str = "0.5.31";
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const CORE_LINKER: &str = "/usr/bin/wasm-ld-19";
const LIBC: &str = "/usr/lib/wasm32-wasi";

/// The target is some 25 MB; where there is no way out, rustup repeats its attempts for long.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(120);

/// What the command line asks for.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Choice {
    /// What is installed, else what can be installed
    #[default]
    Any,
    /// The active Rust compiler with its own target
    Rustup,
    /// Debian's packages
    Debian,
}

/// A compiler that is ready to build guests.
#[derive(Debug)]
pub(crate) enum Toolchain {
    /// The active Rust compiler knows the target.
    Rustup,
    /// Debian's compiler and library source; the folder holds the component linker.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// Find or install it.
    ///
    /// # Errors
    /// If there is none and none can be had; the text says what to do.
    pub(crate) fn ready(choice: Choice) -> Result<Self> {
        match choice {
            Choice::Rustup => rustup(),
            Choice::Debian => debian(),
            // What is there goes first: a download that cannot work would cost minutes every time.
            Choice::Any if target_is_installed() => Ok(Self::Rustup),
            Choice::Any if packages_are_installed() => debian(),
            Choice::Any => rustup().or_else(|first| {
                println!("{first:#}");
                debian().with_context(|| {
                    format!(
                        "no compiler for guests; install one with `rustup target add {TARGET}` \
                         and start again"
                    )
                })
            }),
        }
    }

    /// `cargo build` for the guests' target, to be given a manifest and a target folder.
    ///
    /// # Errors
    /// If the search path cannot be extended.
    pub(crate) fn build(&self) -> Result<Command> {
        let mut command = match self {
            Self::Rustup => Command::new("cargo"),
            Self::Debian { .. } => Command::new(CARGO),
        };
        command.args(["build", "--release", "--target", TARGET]);
        if let Self::Debian { linker } = self {
            command.arg("-Zbuild-std=std,panic_abort");
            debian_environment(&mut command, linker)?;
        }
        Ok(command)
    }
}

impl std::fmt::Display for Toolchain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rustup => write!(f, "the active Rust compiler"),
            Self::Debian { .. } => write!(f, "Debian's Rust compiler"),
        }
    }
}

fn target_is_installed() -> bool {
    let mut rustc = Command::new("rustc");
    rustc
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(place::root());
    process::output(&mut rustc).is_ok_and(|folder| Path::new(folder.trim_end()).is_dir())
}

fn rustup() -> Result<Toolchain> {
    if !target_is_installed() {
        println!("installing the {TARGET} target");
        let mut add = Command::new("rustup");
        add.args(["target", "add", TARGET])
            .current_dir(place::root());
        process::run_within(&mut add, DOWNLOAD_LIMIT)?;
    }
    if !target_is_installed() {
        bail!("the active Rust compiler still lacks {TARGET}");
    }
    Ok(Toolchain::Rustup)
}

fn packages_are_installed() -> bool {
    [RUSTC, CARGO, CORE_LINKER, LIBC]
        .iter()
        .all(|file| Path::new(file).exists())
        && Path::new("/usr/lib/rustlib/src/rust/library").exists()
}

fn debian() -> Result<Toolchain> {
    if !packages_are_installed() {
        install_packages()?;
    }
    Ok(Toolchain::Debian {
        linker: component_linker()?,
    })
}

fn install_packages() -> Result<()> {
    debian::install(&PACKAGES, "guests")?;
    if !packages_are_installed() {
        bail!(
            "Debian's packages are installed but lack a part: {}",
            PACKAGES.join(" ")
        );
    }
    Ok(())
}

/// The folder of the linker that makes components, installed if missing.
fn component_linker() -> Result<PathBuf> {
    let home = place::cache()?.join("guest-toolchain");
    let folder = home.join("bin");
    if !folder.join(LINKER).is_file() {
        println!(
            "installing {LINKER} {LINKER_VERSION} in {} (about a minute)",
            home.display()
        );
        let mut install = process::cargo(&["install", "--locked", "--root"]);
        install.arg(&home).arg(format!("{LINKER}@{LINKER_VERSION}"));
        process::run(&mut install)?;
    }
    Ok(folder)
}

fn debian_environment(command: &mut Command, linker: &Path) -> Result<()> {
    let flags =
        format!("-Clink-self-contained=no -L{LIBC} -Clink-arg=--wasm-ld-path={CORE_LINKER}");
    command
        .env("RUSTC", RUSTC)
        // A released compiler builds the standard library only if told that it may.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("PATH", place::path_with(&[linker])?)
        .env("CARGO_TARGET_WASM32_WASIP2_LINKER", LINKER)
        .env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", flags)
        // Set by `cargo run` for the active compiler; Debian's must find its own libraries.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("RUSTUP_TOOLCHAIN");
    Ok(())
}
