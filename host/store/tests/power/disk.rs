//! A folder on a disk that may lose its power: what is safe, and what is only on its way.
//!
//! A sync of a file makes its bytes and its length safe, but not its name; a sync of a folder makes
//! the names in it safe. Whatever was not synced may be there or not: each write by itself, a torn one
//! by sectors; names in the order they changed.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::trace::Event;

/// What a disk writes whole.
const SECTOR_BYTES: usize = 512;

/// Random numbers from a seed (xorshift).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}

#[derive(Clone)]
enum Write {
    Bytes(u64, Vec<u8>),
    Len(u64),
}

#[derive(Default)]
struct Inode {
    safe: Vec<u8>,
    on_the_way: Vec<Write>,
    /// How many writes are safe.
    safe_writes: usize,
    /// As programs see it.
    len: u64,
}

#[derive(Clone)]
enum Name {
    File(PathBuf, usize),
    Dir(PathBuf),
    Gone(PathBuf),
}

/// The folder.
#[derive(Default)]
pub(crate) struct Disk {
    inodes: Vec<Inode>,
    /// As programs see them.
    names: HashMap<PathBuf, usize>,
    safe_names: Vec<Name>,
    names_on_the_way: Vec<Name>,
    /// Syncs begun: of which file or folder, and how many of its changes are covered.
    syncs: HashMap<u32, (PathBuf, usize)>,
}

impl Disk {
    pub(crate) fn apply(&mut self, event: Event) {
        match event {
            Event::Opened {
                path,
                create,
                truncate,
            } => self.open(path, create, truncate),
            Event::MadeDir(path) => self.names_on_the_way.push(Name::Dir(path)),
            Event::Renamed(from, to) => {
                if let Some(inode) = self.names.remove(&from) {
                    self.names.insert(to.clone(), inode);
                    self.names_on_the_way.push(Name::File(to, inode));
                    self.names_on_the_way.push(Name::Gone(from));
                }
            }
            Event::Removed(path) => {
                self.names.remove(&path);
                self.names_on_the_way.push(Name::Gone(path));
            }
            Event::Wrote { path, at, bytes } => {
                let inode = self.inode(&path);
                let at = at.unwrap_or(inode.len);
                inode.len = inode.len.max(at + bytes.len() as u64);
                inode.on_the_way.push(Write::Bytes(at, bytes));
            }
            Event::Truncated { path, len } => {
                let inode = self.inode(&path);
                inode.len = len;
                inode.on_the_way.push(Write::Len(len));
            }
            Event::SyncBegan { thread, path } => {
                let covered = match self.names.get(&path) {
                    Some(inode) => self.inodes[*inode].writes(),
                    None => self.names_on_the_way.len(),
                };
                self.syncs.insert(thread, (path, covered));
            }
            Event::SyncEnded { thread } => {
                if let Some((path, covered)) = self.syncs.remove(&thread) {
                    self.sync(&path, covered);
                }
            }
            Event::Acked(..) | Event::Other => {}
        }
    }

    fn open(&mut self, path: PathBuf, create: bool, truncate: bool) {
        match self.names.get(&path) {
            Some(inode) if truncate => {
                let inode = &mut self.inodes[*inode];
                inode.len = 0;
                inode.on_the_way.push(Write::Len(0));
            }
            Some(_) => {}
            None if create => {
                let inode = self.inodes.len();
                self.inodes.push(Inode::default());
                self.names.insert(path.clone(), inode);
                self.names_on_the_way.push(Name::File(path, inode));
            }
            None => {}
        }
    }

    fn inode(&mut self, path: &Path) -> &mut Inode {
        let inode = self.names[path];
        &mut self.inodes[inode]
    }

    fn sync(&mut self, path: &Path, covered: usize) {
        if let Some(inode) = self.names.get(path) {
            let inode = &mut self.inodes[*inode];
            // Another thread may have synced some of it meanwhile.
            let covered = covered.saturating_sub(inode.safe_writes);
            for write in inode.on_the_way.drain(..covered) {
                write.on(&mut inode.safe);
            }
            inode.safe_writes += covered;
            return;
        }
        let covered = covered.min(self.names_on_the_way.len());
        let (mut kept, names) = (Vec::new(), self.names_on_the_way.clone());
        for (place, name) in names.into_iter().enumerate() {
            if place < covered && name.path().parent() == Some(path) {
                self.safe_names.push(name);
            } else {
                kept.push(name);
            }
        }
        self.names_on_the_way = kept;
    }

    /// How many writes are not safe.
    pub(crate) fn unsynced(&self) -> usize {
        self.inodes.iter().map(|inode| inode.on_the_way.len()).sum()
    }

    /// Writes the folder into `dir` as a cut at this moment may leave it.
    pub(crate) fn leave(&self, dir: &Path, dice: &mut Dice) {
        let kept = dice.roll(self.names_on_the_way.len() + 1);
        let names = self.safe_names.iter().chain(&self.names_on_the_way[..kept]);
        let (mut files, mut dirs) = (HashMap::new(), Vec::new());
        for name in names {
            match name {
                Name::File(path, inode) => drop(files.insert(path, *inode)),
                Name::Dir(path) => dirs.push(path),
                Name::Gone(path) => drop(files.remove(path)),
            }
        }
        for path in dirs {
            fs::create_dir_all(dir.join(path)).unwrap();
        }
        for (path, inode) in files {
            let Some(parent) = path.parent() else {
                continue;
            };
            if dir.join(parent).is_dir() {
                fs::write(dir.join(path), self.inodes[inode].left(dice)).unwrap();
            }
        }
    }
}

impl Name {
    fn path(&self) -> &Path {
        let (Self::File(path, _) | Self::Dir(path) | Self::Gone(path)) = self;
        path
    }
}

impl Inode {
    /// How many there were.
    fn writes(&self) -> usize {
        self.safe_writes + self.on_the_way.len()
    }

    /// Its bytes after a cut.
    fn left(&self, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = self.safe.clone();
        for write in &self.on_the_way {
            match (dice.roll(3), write) {
                (0, _) => {}
                (1, Write::Bytes(at, data)) => tear(*at, data, &mut bytes, dice),
                _ => write.on(&mut bytes),
            }
        }
        bytes
    }
}

/// Some sectors of a write.
fn tear(at: u64, data: &[u8], bytes: &mut Vec<u8>, dice: &mut Dice) {
    let first = SECTOR_BYTES - at as usize % SECTOR_BYTES;
    let mut done = 0;
    while done < data.len() {
        let len = if done == 0 { first } else { SECTOR_BYTES };
        let end = data.len().min(done + len);
        if dice.roll(2) == 0 {
            Write::Bytes(at + done as u64, data[done..end].to_vec()).on(bytes);
        }
        done = end;
    }
}

impl Write {
    fn on(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Len(len) => bytes.resize(usize::try_from(*len).unwrap(), 0),
            Self::Bytes(at, data) => {
                let at = usize::try_from(*at).unwrap();
                if bytes.len() < at + data.len() {
                    bytes.resize(at + data.len(), 0);
                }
                bytes[at..at + data.len()].copy_from_slice(data);
            }
        }
    }
}
