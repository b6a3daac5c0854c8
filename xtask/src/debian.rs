//! Owns the installing of Debian's packages, where that is possible: what is missing elsewhere is told instead.

use std::process::Command;

use anyhow::{Result, bail};
use rustix::process::geteuid;

use crate::{place, process};

/// Install packages of the system.
///
/// # Errors
/// If this is no Debian system, or not its administrator who asks; the text names the packages.
pub(crate) fn install(packages: &[&str], reason: &str) -> Result<()> {
    let named = packages.join(" ");
    if place::on_path("apt-get").is_none() || !geteuid().is_root() {
        bail!("Debian's packages ({named}) need a Debian system and its administrator");
    }
    println!("installing Debian's packages for {reason}: {named}");
    apt(&["update", "-q"])?;
    let mut install = vec!["install", "-q", "-y", "--no-install-recommends"];
    install.extend(packages);
    apt(&install)
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    process::run(&mut command)
}
