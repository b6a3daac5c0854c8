//! Owns the building of guests in JavaScript and Python. Each is a folder of `plugins/`, and its component goes to
//! `plugins/FOLDER.wasm` of the target folder.
//!
//! - JavaScript: a folder with `package.json`, whose script `build` makes the component.
//! - Python: a folder with `requirements.txt`, whose module `plugin` is made a component.
//!
//! The tools are pinned by the lock file of the folder, and installed in the cache folder. A component contains the engine of
//! its language and takes ten seconds or more to make, so it is made anew only if something that it is made of has changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::guests::Component;
use crate::node::Node;
use crate::{place, process, tools};

const FOLDER: &str = "plugins";
const WIT: &str = "wit";
const WORLD: &str = "plugin";

/// What other programs leave in a guest's folder.
const LEAVINGS: [&str; 3] = ["node_modules", "__pycache__", "plugin.wasm"];

/// The guests in JavaScript.
///
/// # Errors
/// If node, npm or a package is missing, or a guest does not build.
pub(crate) fn javascript(build: &Path) -> Result<Vec<Component>> {
    each("package.json", build, |guest, out| {
        let node = Node::ready()?;
        let home = place::cache()?.join(guest.name());
        node.packages(&guest.0, &home)?;
        let mut npm = node.npm(&[&home.join("node_modules/.bin")])?;
        npm.args(["run", "--silent", "build", "--", "--out"])
            .arg(out);
        process::run(npm.current_dir(&guest.0))
    })
}

/// The guests in Python.
///
/// # Errors
/// If Python or a package is missing, or a guest does not build.
pub(crate) fn python(build: &Path) -> Result<Vec<Component>> {
    each("requirements.txt", build, |guest, out| {
        let home = place::cache()?.join(guest.name());
        tools::python_environment(&tools::python()?, &guest.0, &home)?;
        let mut componentize = Command::new(home.join("bin/componentize-py"));
        componentize
            .args(["--quiet", "--world", WORLD, "--wit-path"])
            .arg(place::root().join(WIT))
            .args(["componentize", "plugin", "--output"])
            .arg(out)
            // Else it would look for modules in whatever Python the machine has.
            .env("VIRTUAL_ENV", &home)
            .current_dir(&guest.0);
        process::run(&mut componentize)
    })
}

/// A guest, by its folder.
struct Guest(PathBuf);

impl Guest {
    fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// A number that is another one if a file has changed that the component is made of.
    fn inputs(&self) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        for folder in [&self.0, &place::root().join(WIT)] {
            hash_folder(folder, &mut hasher)?;
        }
        Ok(hasher.finish())
    }
}

/// The components of the guests that have a file of this name: those that were made before, or are made now.
fn each(
    manifest: &str,
    build: &Path,
    make: impl Fn(&Guest, &Path) -> Result<()>,
) -> Result<Vec<Component>> {
    let mut components = Vec::new();
    for entry in fs::read_dir(place::root().join(FOLDER))? {
        let guest = Guest(entry?.path());
        if !guest.0.join(manifest).is_file() {
            continue;
        }
        let name = guest.name();
        let built = build.join(format!("{name}.wasm"));
        let mark = build.join(format!("{name}.inputs"));
        let inputs = guest.inputs()?.to_string();
        let fresh = built.is_file() && fs::read_to_string(&mark).is_ok_and(|mark| mark == inputs);
        if !fresh {
            fs::create_dir_all(build)?;
            make(&guest, &built).with_context(|| {
                format!("{FOLDER}/{name} (`cargo xtask plugins --only rust` does without it)")
            })?;
            fs::write(&mark, inputs)?;
        }
        components.push(Component {
            out: PathBuf::from(format!("{FOLDER}/{name}.wasm")),
            bytes: fs::read(&built).with_context(|| format!("reading {}", built.display()))?,
        });
    }
    Ok(components)
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .and_then(Iterator::collect)
        .with_context(|| format!("reading {}", folder.display()))?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        if LEAVINGS.iter().any(|leaving| file.file_name() == *leaving) {
            continue;
        }
        let path = file.path();
        if path.is_dir() {
            hash_folder(&path, hasher)?;
        } else {
            file.file_name().hash(hasher);
            fs::read(&path)?.hash(hasher);
        }
    }
    Ok(())
}
