//! Compilation of a stranger's component, in a child process with limits, and the cache of what came out.
//!
//! A compiler that crashes, hangs or eats memory is one refused plugin. What the child does *not* bound is a compiler that its
//! input has subverted: the host runs the output.
//!
//! The cache is a private folder. An entry is named by version and by everything that wasmtime requires to be the same where
//! a component is compiled and where it runs; it is used only if its MAC, whose key the child never sees, is right.

use crate::engine::{self, Metering};
use crate::files;
use crate::plugin::{PluginError, Version};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::Component;

/// How to compile: a program that calls [`child_main`], and what it may use.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Address space of the child, in bytes. A JavaScript or Python component needs about 600 MB.
    pub memory_bytes: u64,
    /// Processor time of the child, in seconds. A JavaScript or Python component takes 15 of them.
    pub cpu_s: u64,
}

/// The largest compiled component that is taken from a child, in bytes: a 12 MB component makes 43 MB.
const COMPILED_BYTES_MAX: u64 = 512 << 20;

/// What a child says of a failure is cut here.
const COMPLAINT_BYTES_MAX: u64 = 4 << 10;

/// What the child reads before the component: whether a guest's work is counted.
fn tag(metering: Metering) -> u8 {
    match metering {
        Metering::Fuel => b'f',
        Metering::Off => b'-',
    }
}

/// Serve as the child: a tag and a component on standard input, the compiled one on standard output.
///
/// The two arguments are the limits of [`Compiler`]; the child sets them for itself before it reads a byte.
pub fn child_main(memory_bytes: u64, cpu_s: u64) -> ExitCode {
    match compile_stdin(memory_bytes, cpu_s) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is how the child answers; its reader may be gone.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn compile_stdin(memory_bytes: u64, cpu_s: u64) -> Result<(), String> {
    let limit = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    // A host that is killed must not leave compilers behind.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    setrlimit(Resource::As, limit(memory_bytes)).map_err(|error| error.to_string())?;
    setrlimit(Resource::Cpu, limit(cpu_s)).map_err(|error| error.to_string())?;
    let mut component = Vec::new();
    io::stdin()
        .read_to_end(&mut component)
        .map_err(|error| error.to_string())?;
    let (metering, component) = match component.split_first() {
        Some((first, rest)) if *first == tag(Metering::Fuel) => (Metering::Fuel, rest),
        Some((first, rest)) if *first == tag(Metering::Off) => (Metering::Off, rest),
        _ => return Err("there is no component to compile".to_owned()),
    };
    let engine = engine::compiling(metering).map_err(|error| error.to_string())?;
    let compiled = engine
        .precompile_component(component)
        .map_err(|error| format!("{error:#}"))?;
    io::stdout()
        .write_all(&compiled)
        .map_err(|error| error.to_string())
}

impl Compiler {
    async fn compile(&self, metering: Metering, component: &[u8]) -> Result<Vec<u8>, PluginError> {
        let mut child = tokio::process::Command::new(&self.program)
            .args(&self.args)
            .arg(self.memory_bytes.to_string())
            .arg(self.cpu_s.to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // A signal from a terminal is for this process; it ends its compilers itself.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                PluginError::Compile(format!("the compiler did not start: {error}"))
            })?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(PluginError::Compile("the compiler has no pipes".to_owned()));
        };
        let exchange = async {
            let (mut compiled, mut complaint) = (Vec::new(), Vec::new());
            let (mut stdout, mut stderr) = (
                stdout.take(COMPILED_BYTES_MAX),
                stderr.take(COMPLAINT_BYTES_MAX),
            );
            let (_, out, _) = tokio::join!(
                // A child that stops reading says why on its way out.
                async {
                    let _ = stdin.write_all(&[tag(metering)]).await;
                    let _ = stdin.write_all(component).await;
                    drop(stdin);
                },
                stdout.read_to_end(&mut compiled),
                stderr.read_to_end(&mut complaint),
            );
            out.map_err(|error| PluginError::Compile(error.to_string()))?;
            let status = child
                .wait()
                .await
                .map_err(|error| PluginError::Compile(error.to_string()))?;
            Ok((status, compiled, complaint))
        };
        // The processor limit cannot bound a child that waits.
        let patience = Duration::from_secs(self.cpu_s.saturating_mul(2).saturating_add(10));
        let (status, compiled, complaint) = tokio::time::timeout(patience, exchange)
            .await
            .map_err(|_| PluginError::Compile(format!("it took longer than {patience:?}")))??;
        if status.success() {
            return Ok(compiled);
        }
        let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
        Err(PluginError::Compile(match complaint.as_str() {
            "" => format!(
                "the compiler ended with {status}; its limits are {} bytes of memory and {} s of one core",
                self.memory_bytes, self.cpu_s
            ),
            complaint => complaint.to_owned(),
        }))
    }
}

/// Compiled components, by version and compatibility.
pub(crate) struct CompileCache {
    folder: PathBuf,
    key: [u8; 32],
    compiler: Compiler,
    /// Compilers at once.
    compiling: Semaphore,
}

/// Names everything that must be the same where a component is compiled and where it runs.
fn compatibility(engine: &Engine) -> String {
    let mut hasher = Blake3Hasher(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().to_hex()[..16].to_owned()
}

impl CompileCache {
    pub(crate) fn open(folder: PathBuf, compiler: Compiler) -> io::Result<Self> {
        files::private_folder(&folder)?;
        let key = files::read_or_make_key(&folder.join("mac.key"))?;
        Ok(Self {
            folder,
            key,
            compiler,
            compiling: Semaphore::new(compilers_max()),
        })
    }

    /// The component of this version, from the cache or compiled now.
    pub(crate) async fn load(
        &self,
        (engine, metering): (&Engine, Metering),
        version: &Version,
        component: &[u8],
    ) -> Result<Component, PluginError> {
        let path = self
            .folder
            .join(format!("{version}-{}.cwasm", compatibility(engine)));
        if self.is_own(&path) {
            match map_compiled(engine, &path) {
                Ok(found) => return Ok(found),
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), path = %path.display(), "an entry of the compile cache cannot be loaded; it is made anew");
                }
            }
        }
        // The semaphore is never closed.
        let seat = self.compiling.acquire().await;
        // It may take a quarter of a minute, and nothing else is said of it until the plugin is served.
        tracing::info!(%version, bytes = component.len(), "compiling a component");
        let compiled = self.compiler.compile(metering, component).await?;
        drop(seat);
        files::write_whole(&mac_path(&path), self.mac(&path, &compiled).as_bytes())
            .and_then(|()| files::write_whole(&path, &compiled))
            .map_err(|error| {
                PluginError::Storage(format!(
                    "the compile cache {}: {error}",
                    self.folder.display()
                ))
            })?;
        map_compiled(engine, &path).map_err(|error| PluginError::Compile(format!("{error:#}")))
    }

    /// Whether there is an entry, and this host (or one that shares its cache) wrote it.
    fn is_own(&self, path: &Path) -> bool {
        let (Ok(mac), Ok(compiled)) = (std::fs::read(mac_path(path)), std::fs::read(path)) else {
            return false;
        };
        // `blake3::Hash` compares in constant time.
        let own = <[u8; 32]>::try_from(mac)
            .is_ok_and(|mac| self.mac(path, &compiled) == blake3::Hash::from(mac));
        if !own {
            tracing::warn!(path = %path.display(), "an entry of the compile cache was not written by this host; it is made anew");
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
            .field("folder", &self.folder)
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
