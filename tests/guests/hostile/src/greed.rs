//! Time, memory, stack and traps.

use longshore_plugin::{Result, confirm, progress};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

pub(crate) fn spin() {
    let mut x = 0u64;
    loop {
        x = black_box(x.wrapping_add(1));
    }
}

pub(crate) fn recurse() -> String {
    deeper(black_box(0)).to_string()
}

/// Nothing of its frame lies in memory, so that it is the host's stack that ends.
#[inline(never)]
fn deeper(depth: u64) -> u64 {
    if depth == u64::MAX {
        0
    } else {
        deeper(depth + 1).wrapping_mul(31) ^ depth
    }
}

/// Takes memory and keeps it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Grow {
    mib: usize,
}

pub(crate) fn grow(args: Grow) -> String {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for taken in 0..args.mib {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(MIB).is_err() {
            return format!("refused after {taken} MiB");
        }
        piece.resize(MIB, 1);
        kept.push(black_box(piece));
    }
    format!("took {} MiB", kept.len())
}

/// Takes memory, asks, and still has it then.
pub(crate) fn grow_then_ask(args: Grow) -> Result<String> {
    let kept = black_box(vec![1_u8; args.mib * MIB]);
    let yes = confirm("Is it well?")?;
    let whole = kept.iter().all(|byte| *byte == 1);
    Ok(format!("{yes}: {} MiB, {whole}", kept.len() / MIB))
}

/// Computes, then traps if told so.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Burn {
    /// How many million steps.
    millions: u64,
    /// Whether it traps at the end.
    #[serde(default)]
    trap: bool,
}

pub(crate) fn burn(args: Burn) -> String {
    let mut x = 1u64;
    for _ in 0..args.millions.saturating_mul(1_000_000) {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    if args.trap {
        trap();
    }
    format!("{x:x}")
}

pub(crate) fn trap() {
    panic!("trapped on purpose");
}

/// Traps after some progress.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct TrapAfter {
    /// How many steps of 10 ms come before.
    n: u32,
}

pub(crate) fn trap_after(args: TrapAfter) {
    for step in 1..=args.n {
        thread::sleep(Duration::from_millis(10));
        progress(f64::from(step), f64::from(args.n), "towards the trap");
    }
    trap();
}

/// Ends the whole program.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Exit {
    #[serde(default)]
    code: i32,
}

pub(crate) fn exit(args: Exit) {
    std::process::exit(args.code);
}

/// Waits, and goes on waiting when it is woken.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Sleep {
    /// For how long, in milliseconds.
    ms: u64,
}

pub(crate) fn sleep(args: Sleep) -> String {
    let start = Instant::now();
    let whole = Duration::from_millis(args.ms);
    while let Some(left) = whole
        .checked_sub(start.elapsed())
        .filter(|left| !left.is_zero())
    {
        thread::sleep(left);
    }
    format!("slept {} ms", args.ms)
}

pub(crate) fn sleep_for_ever() {
    loop {
        thread::sleep(Duration::MAX);
    }
}

pub(crate) fn read_stdin() -> String {
    let mut bytes = Vec::new();
    match std::io::stdin().read_to_end(&mut bytes) {
        Ok(count) => format!("{count} bytes"),
        Err(error) => format!("error: {error}"),
    }
}

pub(crate) fn env() -> Value {
    let vars: Vec<_> = std::env::vars().collect();
    let args: Vec<_> = std::env::args().collect();
    let root: Result<Vec<_>, _> = std::fs::read_dir("/").map(|entries| {
        entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    });
    json!({
        "vars": vars,
        "args": args,
        "cwd": std::env::current_dir().ok(),
        "root": root.map_err(|error| error.to_string()),
    })
}
