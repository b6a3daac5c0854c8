//! The ways in which people and tools put a new file in the place of an old one.
//!
//! It must not know what the files are, nor who reads them.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// How long a slow writer rests after each piece.
const REST: Duration = Duration::from_millis(15);

/// One way.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// What it is called.
    pub name: &'static str,
    /// Whether there is a file at every moment.
    pub is_gapless: bool,
    /// Puts these bytes in the place of the file.
    pub save: fn(&Path, &[u8]),
}

/// The way of this name.
///
/// # Panics
/// If there is none.
pub fn way(name: &str) -> Way {
    let all = ways();
    *all.iter().find(|way| way.name == name).unwrap()
}

/// All of them. Those that leave a link behind come last: what writes into the file after them would write elsewhere.
pub fn ways() -> [Way; 16] {
    let gapless = |name, save| Way {
        name,
        is_gapless: true,
        save,
    };
    let with_gap = |name, save| Way {
        name,
        is_gapless: false,
        save,
    };
    [
        gapless("write over", |path, bytes| fs::write(path, bytes).unwrap()),
        gapless("write slowly", |path, bytes| {
            write_slowly(File::create(path).unwrap(), bytes);
        }),
        // As `rsync --inplace` does.
        gapless("write into", |path, bytes| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(bytes.len() as u64).unwrap();
            write_slowly(file, bytes);
        }),
        gapless("cp", |path, bytes| {
            tool(&["cp"], &hidden(path, bytes), path);
        }),
        gapless("mv", |path, bytes| {
            tool(&["mv"], &hidden(path, bytes), path);
        }),
        with_gap("install", |path, bytes| {
            tool(&["install"], &hidden(path, bytes), path);
        }),
        with_gap("cp --remove-destination", |path, bytes| {
            tool(&["cp", "--remove-destination"], &hidden(path, bytes), path);
        }),
        // As rsync does, and many editors.
        gapless("rename", |path, bytes| {
            fs::rename(hidden(path, bytes), path).unwrap();
        }),
        with_gap("backup, rename", |path, bytes| {
            let new = hidden(path, bytes);
            fs::rename(path, path.with_extension("wasm~")).unwrap();
            fs::rename(new, path).unwrap();
        }),
        with_gap("backup, create", |path, bytes| {
            fs::rename(path, path.with_extension("wasm~")).unwrap();
            fs::write(path, bytes).unwrap();
        }),
        with_gap("delete, create", |path, bytes| {
            fs::remove_file(path).unwrap();
            fs::write(path, bytes).unwrap();
        }),
        with_gap("delete, hard link", |path, bytes| {
            let new = hidden(path, bytes);
            fs::remove_file(path).unwrap();
            fs::hard_link(&new, path).unwrap();
            fs::remove_file(new).unwrap();
        }),
        gapless("flip link", flip_link),
        gapless("flip folder", flip_folder),
        gapless("replace behind link", replace_behind_link),
        // The file itself again.
        gapless("rename over link", |path, bytes| {
            fs::rename(hidden(path, bytes), path).unwrap();
        }),
    ]
}

fn write_slowly(mut file: File, bytes: &[u8]) {
    for piece in bytes.chunks(bytes.len() / 4 + 1) {
        file.write_all(piece).unwrap();
        sleep(REST);
    }
}

fn tool(words: &[&str], from: &Path, to: &Path) {
    let mut command = Command::new(words[0]);
    let status = command.args(&words[1..]).args([from, to]).status().unwrap();
    assert!(status.success(), "{words:?}: {status}");
}

/// A file beside another one, under a name that is not looked at.
fn hidden(path: &Path, bytes: &[u8]) -> PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap();
    let part = path.with_file_name(format!(".{name}.Xq3b7a"));
    fs::write(&part, bytes).unwrap();
    part
}

/// A file that is nowhere near another one.
fn far(path: &Path, bytes: &[u8]) -> PathBuf {
    let folder = path.parent().unwrap().with_file_name("far");
    fs::create_dir_all(&folder).unwrap();
    let found = fs::read_dir(&folder).unwrap().count();
    let file = folder.join(format!("{found}"));
    fs::write(&file, bytes).unwrap();
    file
}

/// Has a name stand for something else, in one step.
fn link(name: &Path, to: &Path) {
    let new = name.with_file_name(".new-link");
    symlink(to, &new).unwrap();
    fs::rename(new, name).unwrap();
}

fn links_to(name: &Path, to: &Path) -> bool {
    match fs::read_link(name) {
        Ok(target) => target == to,
        Err(error) if error.kind() == ErrorKind::InvalidInput => false,
        Err(error) => panic!("{error}"),
    }
}

fn flip_link(path: &Path, bytes: &[u8]) {
    link(path, &far(path, bytes));
}

/// As Kubernetes does with what it mounts: the file is a link through a folder that is a link itself.
fn flip_folder(path: &Path, bytes: &[u8]) {
    let name = path.file_name().unwrap();
    let data = path.with_file_name("..data");
    let folder = far(path, b"").with_extension("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
    link(&data, &folder);
    let through = Path::new("..data").join(name);
    if !links_to(path, &through) {
        link(path, &through);
    }
}

/// The file is a link, and what it stands for is replaced: in the folder nothing happens.
fn replace_behind_link(path: &Path, bytes: &[u8]) {
    let behind = far(path, bytes);
    let stable = behind.with_file_name("stable.wasm");
    fs::rename(behind, &stable).unwrap();
    if !links_to(path, &stable) {
        link(path, &stable);
    }
}
