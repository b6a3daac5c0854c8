//! The cache of compiled components: a private folder, which several hosts may share.
//!
//! An entry is named by version and by everything that wasmtime requires to be the same where a component is compiled and where
//! it runs; it is used only if its MAC, whose key the compiler never sees, is right. Nothing here is needed: what is missing or
//! damaged is compiled again. So nothing waits for the disk, and where there is too much, what was used longest ago goes.
//!
//! It must not know which versions are served.

use crate::clock;
use crate::compile::Compiler;
use crate::engine::Metering;
use crate::files;
use crate::plugin::{PluginError, Version};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::Component;

/// What was used within this time stays, whatever the bound: another host may be about to map it.
const FRESH: Duration = Duration::from_secs(3_600);

/// Compiled components, by version and compatibility.
pub(crate) struct CompileCache {
    kept: Arc<Kept>,
    compiler: Compiler,
    /// Compilers at once.
    compiling: Semaphore,
    bytes_max: u64,
    /// Whether there may be too much: at the start, when an entry was added, and as long as there is.
    may_be_full: AtomicBool,
}

/// The folder, and the key by which our own entries are known.
struct Kept {
    folder: PathBuf,
    key: [u8; 32],
}

/// One entry, or what a crash has left of one.
#[derive(Default)]
struct Entry {
    files: Vec<PathBuf>,
    bytes: u64,
    used: Option<SystemTime>,
}

/// Names everything that must be the same where a component is compiled and where it runs.
fn compatibility(engine: &Engine) -> String {
    let mut hasher = Blake3Hasher(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().to_hex()[..16].to_owned()
}

impl CompileCache {
    pub(crate) fn open(folder: PathBuf, compiler: Compiler, bytes_max: u64) -> io::Result<Self> {
        files::private_folder(&folder)?;
        let key = files::read_or_make_key(&folder.join("mac.key"))?;
        Ok(Self {
            kept: Arc::new(Kept { folder, key }),
            compiler,
            compiling: Semaphore::new(compilers_max()),
            bytes_max,
            may_be_full: AtomicBool::new(true),
        })
    }

    /// The component of this version, from the cache or compiled now.
    pub(crate) async fn load(
        &self,
        (engine, metering): (&Engine, Metering),
        version: &Version,
        component: &[u8],
    ) -> Result<Component, PluginError> {
        let name = format!("{version}-{}.cwasm", compatibility(engine));
        let path = self.kept.folder.join(name);
        if let Some(found) = self.find(engine, &path).await? {
            return Ok(found);
        }
        // The semaphore is never closed.
        let seat = self.compiling.acquire().await;
        // Another file with the same bytes may have been first.
        if let Some(found) = self.find(engine, &path).await? {
            return Ok(found);
        }
        // It may take a quarter of a minute, and nothing else is said of it until the plugin is served.
        tracing::info!(%version, bytes = component.len(), "compiling a component");
        let compiled = self.compiler.compile(metering, component).await?;
        drop(seat);
        self.may_be_full.store(true, Ordering::Relaxed);
        let (kept, engine) = (self.kept.clone(), engine.clone());
        let add = files::aside(move || {
            kept.add(&path, &compiled)?;
            Ok(map_compiled(&engine, &path))
        });
        let added = add.await.map_err(|error| self.failed(&error))?;
        added.map_err(|error| PluginError::Compile(format!("{error:#}")))
    }

    /// Reading and checking an entry of 45 MB takes a core for a while.
    async fn find(&self, engine: &Engine, path: &Path) -> Result<Option<Component>, PluginError> {
        let (kept, engine, path) = (self.kept.clone(), engine.clone(), path.to_owned());
        let find = files::aside(move || Ok(kept.find(&engine, &path)));
        find.await.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> PluginError {
        let folder = self.kept.folder.display();
        PluginError::Storage(format!("the compile cache {folder}: {error}"))
    }

    /// Remove what was used longest ago until the rest is within the bound. What is needed here stays, and what was used a moment
    /// ago: so another host that shares the folder finds what it has just made.
    pub(crate) fn sweep(&self, engines: &[&Engine], needed: &HashSet<Version>) -> io::Result<()> {
        if !self.may_be_full.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let bytes = self.remove_unneeded(engines, needed)?;
        if bytes > self.bytes_max {
            self.may_be_full.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The size of what stays, in bytes.
    fn remove_unneeded(&self, engines: &[&Engine], needed: &HashSet<Version>) -> io::Result<u64> {
        let endings: Vec<_> = engines.iter().map(|engine| compatibility(engine)).collect();
        let names = |ending: &String| -> Vec<_> {
            let name = |version| format!("{version}-{ending}");
            needed.iter().map(name).collect()
        };
        let needed: HashSet<String> = endings.iter().flat_map(names).collect();
        let entries = entries(&self.kept.folder)?;
        let mut bytes: u64 = entries.values().map(|entry| entry.bytes).sum();
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by_key(|(_, entry)| entry.used);
        let fresh = now().checked_sub(FRESH);
        for (name, entry) in entries {
            if bytes <= self.bytes_max || entry.used > fresh {
                break;
            }
            if needed.contains(&name) {
                continue;
            }
            for file in &entry.files {
                remove(file)?;
            }
            bytes -= entry.bytes;
            tracing::debug!(
                name,
                "a compiled component is kept no longer: the cache is full"
            );
        }
        Ok(bytes)
    }
}

impl Kept {
    fn add(&self, path: &Path, compiled: &[u8]) -> io::Result<()> {
        files::write_unsynced(&mac_path(path), self.mac(path, compiled).as_bytes())?;
        files::write_unsynced(path, compiled)
    }

    fn find(&self, engine: &Engine, path: &Path) -> Option<Component> {
        if !self.is_own(path) {
            return None;
        }
        match map_compiled(engine, path) {
            Ok(found) => {
                note_use(path);
                Some(found)
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), path = %path.display(), "an entry of the compile cache cannot be loaded; it is made anew");
                None
            }
        }
    }

    /// Whether there is an entry, and this host (or one that shares its cache) wrote it.
    fn is_own(&self, path: &Path) -> bool {
        let read = |path: &Path| files::read_regular(path);
        let (Ok(mac), Ok(compiled)) = (read(&mac_path(path)), read(path)) else {
            return false;
        };
        // `blake3::Hash` compares in constant time.
        let own = <[u8; 32]>::try_from(mac)
            .is_ok_and(|mac| self.mac(path, &compiled) == blake3::Hash::from(mac));
        if !own {
            tracing::warn!(path = %path.display(), "an entry of the compile cache is damaged, or was not written by this host; it is made anew");
        }
        own
    }

    fn mac(&self, path: &Path, compiled: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        hasher
            .update(&(name.len() as u64).to_le_bytes())
            .update(name)
            .update(compiled);
        hasher.finalize()
    }
}

impl std::fmt::Debug for CompileCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompileCache")
            .field("folder", &self.kept.folder)
            .finish_non_exhaustive()
    }
}

/// One for each core, and never less than two: one component that takes very long must not hold up all others.
fn compilers_max() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

fn mac_path(path: &Path) -> PathBuf {
    path.with_extension("mac")
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(clock::unix_ms())
}

/// The time of the file tells when it was used last.
fn note_use(path: &Path) {
    // What cannot be noted only goes earlier.
    let _ = files::open_regular(path).and_then(|file| file.set_modified(now()));
}

/// All entries of a folder, by name.
fn entries(folder: &Path) -> io::Result<HashMap<String, Entry>> {
    let mut entries: HashMap<String, Entry> = HashMap::new();
    for found in fs::read_dir(folder)? {
        let path = found?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        // The key is none of them.
        let (Some("cwasm" | "mac" | "partial"), Some(stem)) = (ending, stem) else {
            continue;
        };
        // What is not there any more, another host has removed.
        let Ok(metadata) = path.metadata() else {
            continue;
        };
        let entry = entries.entry(stem.to_owned()).or_default();
        entry.bytes += metadata.len();
        entry.used = entry.used.max(metadata.modified().ok());
        entry.files.push(path);
    }
    Ok(entries)
}

/// Of several hosts one removes it.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[allow(
    unsafe_code,
    reason = "mapping the file is what keeps a 40 MB component out of memory"
)]
fn map_compiled(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file is an output of `Engine::precompile_component` of this very configuration: its MAC, with a key that
    // only this host has, was checked just now; and it does not change while it is mapped: it lies in a folder that only
    // this user can enter, and is only ever replaced by rename.
    unsafe { Component::deserialize_file(engine, path) }
}

/// A stable hasher for wasmtime's compatibility hash; the one of the standard library may differ between builds.
struct Blake3Hasher(blake3::Hasher);

impl Hasher for Blake3Hasher {
    fn finish(&self) -> u64 {
        let mut short = [0; 8];
        short.copy_from_slice(&self.0.finalize().as_bytes()[..8]);
        u64::from_le_bytes(short)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;

    /// A component with nothing in it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[tokio::test]
    async fn who_looks_for_an_entry_does_not_hash_it() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = Compiler {
            program: "/no/such/compiler".into(),
            args: Vec::new(),
            environment: Vec::new(),
            memory_bytes: 0,
            cpu_s: 0,
        };
        let cache = CompileCache::open(folder.path().to_owned(), compiler, 0).unwrap();
        let host = crate::engine::Host::new(1).unwrap();
        let version = Version::of(EMPTY);
        let name = format!("{version}-{}.cwasm", compatibility(&host.engine));
        let compiled = host.engine.precompile_component(EMPTY).unwrap();
        cache
            .kept
            .add(&folder.path().join(name), &compiled)
            .unwrap();
        let mut load = Box::pin(cache.load((&host.engine, host.metering), &version, EMPTY));
        assert!(poll!(&mut load).is_pending());
        load.await.unwrap();
    }
}
