//! Owns the building of guests: the example plugins and those that only tests use.
//!
//! A guest in Rust says in its manifest where it goes, so that this file knows none by name:
//! `[package.metadata.longshore] out = "plugins/NAME.wasm"`, relative to the target folder. A guest
//! in text form says it in its first line, `;; out: guests/FOLDER/NAME.wasm`. Those in other languages
//! are in `scripted.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde_json::Value;

use crate::toolchain::{Choice, TARGET, Toolchain};
use crate::{place, process, scripted, strangers};

/// The workspaces of guests: examples, and tests' own.
pub(crate) const WORKSPACES: [&str; 2] = ["plugins", "tests/guests"];

/// Guests written as text.
const TEXTS: &str = "tests/guests/wat";

/// Both workspaces build here, so that the standard library is compiled once.
const BUILD: &str = "guest-build";

/// What a guest is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Rust, and the tests' guests in text form
    Rust,
    /// JavaScript, by componentize-js
    Javascript,
    /// Python, by componentize-py
    Python,
}

/// One built component.
pub(crate) struct Component {
    /// Relative to the target folder.
    pub(crate) out: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// Build the guests in some languages, or all if none is named, and put their components where they go.
///
/// # Errors
/// If there is no compiler for a language, or a guest does not build; the text names it.
pub(crate) fn build(only: &[Language], choice: Choice) -> Result<()> {
    let build = place::target().join(BUILD);
    let chosen = |language: &&Language| only.is_empty() || only.contains(language);
    for language in Language::value_variants().iter().filter(chosen) {
        let components = match language {
            Language::Rust => build_rust(choice)?,
            Language::Javascript => scripted::javascript(&build)?,
            Language::Python => scripted::python(&build)?,
        };
        // What was built before in other languages stays.
        let list = build.join(format!("outputs-{language:?}.txt").to_lowercase());
        place_all(&components, &list)?;
        if *language == Language::Rust {
            strangers::write(strangers::SEED)?;
        }
    }
    Ok(())
}

fn build_rust(choice: Choice) -> Result<Vec<Component>> {
    let toolchain = Toolchain::ready(choice)?;
    println!("building guests with {toolchain}");
    let mut components = Vec::new();
    for workspace in manifests() {
        components.extend(build_workspace(&toolchain, &workspace)?);
    }
    components.extend(assemble()?);
    Ok(components)
}

/// The manifests of the guests' workspaces.
pub(crate) fn manifests() -> Vec<PathBuf> {
    let manifests = WORKSPACES.map(|folder| place::root().join(folder).join("Cargo.toml"));
    manifests
        .into_iter()
        .filter(|file| file.is_file())
        .collect()
}

fn build_workspace(toolchain: &Toolchain, manifest: &Path) -> Result<Vec<Component>> {
    let build = place::target().join(BUILD);
    let mut cargo = toolchain.build()?;
    cargo
        .args(["--workspace", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&build);
    process::run(&mut cargo)?;
    let mut metadata = process::cargo(&["metadata", "--format-version=1", "--no-deps"]);
    metadata.arg("--manifest-path").arg(manifest);
    let metadata: Value = serde_json::from_str(&process::output(&mut metadata)?)
        .context("reading what cargo says of a workspace")?;
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let built = build.join(TARGET).join("release");
    let mut components = Vec::new();
    for package in packages {
        if let Some((out, file)) = output_of(package)? {
            let file = built.join(file);
            let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            components.push(Component { out, bytes });
        }
    }
    Ok(components)
}

/// Where a package's component goes, and the file name that cargo gives it. A package without a
/// library that can be loaded is no guest.
fn output_of(package: &Value) -> Result<Option<(PathBuf, String)>> {
    let name = package["name"].as_str().unwrap_or_default();
    let loadable = package["targets"].as_array().and_then(|targets| {
        targets.iter().find(|target| {
            let kinds = target["kind"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
        })
    });
    let out = package["metadata"]["longshore"]["out"].as_str();
    match (loadable, out) {
        (Some(target), Some(out)) => {
            let target = target["name"].as_str().unwrap_or(name);
            let file = format!("{}.wasm", target.replace('-', "_"));
            Ok(Some((checked(out, name)?, file)))
        }
        (Some(_), None) => {
            bail!("{name} does not say where it goes: package.metadata.longshore.out is missing")
        }
        (None, Some(_)) => bail!("{name} says where it goes but has no `cdylib` library"),
        (None, None) => Ok(None),
    }
}

/// Components of the guests in text form.
fn assemble() -> Result<Vec<Component>> {
    let folder = place::root().join(TEXTS);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut components = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "wat") {
            continue;
        }
        let name = file.display().to_string();
        let text = fs::read_to_string(&file).with_context(|| format!("reading {name}"))?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let out = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(";; out: "))
            .map_or_else(|| format!("guests/hostile/{stem}.wasm"), str::to_owned);
        components.push(Component {
            out: checked(&out, &name)?,
            bytes: wat::parse_str(&text).with_context(|| format!("assembling {name}"))?,
        });
    }
    Ok(components)
}

/// An output path that stays in its two folders.
fn checked(out: &str, who: &str) -> Result<PathBuf> {
    let out = out.trim();
    let known = out.starts_with("plugins/") || out.starts_with("guests/");
    ensure!(
        known && out.ends_with(".wasm") && !out.contains(".."),
        "{who} goes to {out:?}; it must be plugins/NAME.wasm or guests/FOLDER/NAME.wasm"
    );
    Ok(PathBuf::from(out))
}

/// Write what has changed, and remove what is in the list of an earlier build and not in this one.
fn place_all(components: &[Component], list: &Path) -> Result<()> {
    let target = place::target();
    let mut outs = BTreeSet::new();
    let mut unchanged = 0_usize;
    for component in components {
        let out = component.out.to_string_lossy().into_owned();
        ensure!(outs.insert(out.clone()), "two guests go to {out}");
        if replace(&target.join(&component.out), &component.bytes)? {
            println!("  written  target/{out}, {} bytes", component.bytes.len());
        } else {
            unchanged += 1;
        }
    }
    let earlier = fs::read_to_string(list).unwrap_or_default();
    for gone in earlier.lines().filter(|line| !outs.contains(*line)) {
        if fs::remove_file(target.join(gone)).is_ok() {
            println!("  removed  target/{gone}");
        }
    }
    let lines: String = outs.iter().map(|out| format!("{out}\n")).collect();
    replace(list, lines.as_bytes())?;
    println!(
        "{} components in target/, {unchanged} of them unchanged",
        components.len()
    );
    Ok(())
}

/// Replace a file as a whole, so that a host that watches it never sees half of it. A file that is
/// the same already is left alone: a running host would load it again for nothing.
fn replace(file: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let fresh = file.with_extension("new");
    fs::write(&fresh, bytes)
        .and_then(|()| fs::rename(&fresh, file))
        .with_context(|| format!("writing {}", file.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guest_says_where_it_goes() {
        let guest = json!({
            "name": "text-stats",
            "targets": [{"name": "text-stats", "kind": ["cdylib", "rlib"]}],
            "metadata": {"longshore": {"out": "plugins/text-stats.wasm"}},
        });
        let (out, file) = output_of(&guest).unwrap().unwrap();
        assert_eq!(out, Path::new("plugins/text-stats.wasm"));
        assert_eq!(file, "text_stats.wasm");
    }

    #[test]
    fn a_guest_without_a_place_is_an_error_and_a_library_is_no_guest() {
        let guest = json!({"name": "a", "targets": [{"name": "a", "kind": ["cdylib"]}]});
        assert!(output_of(&guest).is_err());
        let library = json!({"name": "sdk", "targets": [{"name": "sdk", "kind": ["lib"]}]});
        assert!(output_of(&library).unwrap().is_none());
    }

    #[test]
    fn components_stay_in_their_folders() {
        assert!(checked("guests/hostile/loop.wasm", "loop").is_ok());
        for out in [
            "debug/longshore",
            "plugins/../x.wasm",
            "plugins/x",
            "/x.wasm",
        ] {
            assert!(checked(out, "x").is_err(), "{out}");
        }
    }
}
