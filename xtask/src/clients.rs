//! Owns the clients in other languages that the tests drive: where the tests find them.
//!
//! Must not know what they do; `tests/all` says that.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use crate::node::Node;
use crate::place;

/// Put the pinned clients where the tests look, installed if missing: `target/typescript`.
///
/// # Errors
/// If node or npm is missing or fails.
pub(crate) fn ready() -> Result<()> {
    let folder = place::target().join("typescript");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let node = Node::ready()?;
    let packages = place::cache()?.join("typescript");
    node.packages(&place::root().join("tests/typescript"), &packages)?;
    link(&packages.join("node_modules"), &folder.join("node_modules"))?;
    link(&node.program, &folder.join("node"))
}

/// Let `name` stand for `file`, whatever it stood for.
fn link(file: &Path, name: &Path) -> Result<()> {
    if fs::read_link(name).is_ok_and(|now| now == file) {
        return Ok(());
    }
    if name.is_symlink() {
        fs::remove_file(name)?;
    }
    symlink(file, name).with_context(|| format!("linking {}", name.display()))
}
