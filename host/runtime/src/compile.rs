//! Compilation of a stranger's component, in a child process with limits.
//!
//! A compiler that crashes, hangs or eats memory is one refused plugin. What the child does *not* bound is a compiler that its
//! input has subverted: the host runs the output.
//!
//! It must not know what becomes of the output; that is `cache`.

use crate::engine::{self, Metering};
use crate::plugin::PluginError;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How to compile: a program that calls [`child_main`], and what it may use.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// All that is in its environment: name and value.
    pub environment: Vec<(String, String)>,
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
    pub(crate) async fn compile(
        &self,
        metering: Metering,
        component: &[u8],
    ) -> Result<Vec<u8>, PluginError> {
        let mut child = tokio::process::Command::new(&self.program)
            .args(&self.args)
            .arg(self.memory_bytes.to_string())
            .arg(self.cpu_s.to_string())
            .env_clear()
            .envs(self.environment.iter().cloned())
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
