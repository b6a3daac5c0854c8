//! Writes random components: `strangers PLUGIN FOLDER SEED COUNT`. One of three is random as a whole; the others are that plugin
//! with random code: they compile and link, and do whatever comes when they are asked for their tools.
//!
//! The same seed gives the same components.

use anyhow::{Context, Result, ensure};
use arbitrary::{Arbitrary, Unstructured};
use std::fs;
use std::path::Path;
use wasm_smith::{Component, Config, Module};

/// What random things are made of, in bytes; more of it makes larger ones.
const MATTER_BYTES: usize = 6 << 10;

/// Loops and calls of random code before it traps. So it ends of itself; guests that do not are in the zoo.
const TURNS_MAX: u32 = 10_000;

/// Ids of sections (WebAssembly core specification 5.5.2; component model, "Binary Format").
const CORE_MODULE: u8 = 1;
const COMPONENT: u8 = 4;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [template, folder, seed, count] = &arguments[..] else {
        anyhow::bail!("strangers PLUGIN FOLDER SEED COUNT");
    };
    let template = fs::read(template).with_context(|| format!("reading {template}"))?;
    let (seed, count): (u64, u64) = (seed.parse()?, count.parse()?);
    // What an earlier run left there is not wanted.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    for number in 0..count {
        let matter = matter(seed.wrapping_add(number));
        let source = &mut Unstructured::new(&matter);
        let (kind, bytes) = match number % 3 {
            0 => ("whole", whole(source)),
            _ => ("plugin", plugin(source, &template)),
        };
        let bytes = bytes.with_context(|| format!("making number {number}"))?;
        let file = Path::new(folder).join(format!("{kind}-{number:04}.wasm"));
        fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// `SplitMix64` (Steele, Lea, Flood 2014).
fn matter(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    };
    (0..MATTER_BYTES / 8).flat_map(|_| next()).collect()
}

/// A component with any features.
fn whole(source: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let config = Config::arbitrary(source)?;
    Ok(Component::new(config, source)?.to_bytes())
}

/// The plugin with random code of the same exports, and of the features that guests may use.
fn plugin(source: &mut Unstructured<'_>, template: &[u8]) -> Result<Vec<u8>> {
    let mut code = Vec::new();
    replace(template, COMPONENT, |inner| {
        replace(inner, CORE_MODULE, |module| {
            code = module.to_vec();
            Ok(Vec::new())
        })
    })?;
    let config = Config {
        exports: Some(code),
        max_imports: 0,
        // The one that is exported comes on top.
        max_memories: 0,
        max_memory32_bytes: 1 << 20,
        max_table_elements: 1_000,
        reference_types_enabled: false,
        relaxed_simd_enabled: false,
        memory64_enabled: false,
        threads_enabled: false,
        shared_everything_threads_enabled: false,
        gc_enabled: false,
        exceptions_enabled: false,
        compact_imports_enabled: false,
        custom_page_sizes_enabled: false,
        wide_arithmetic_enabled: false,
        ..Config::default()
    };
    let mut module = Module::new(config, source)?;
    module.ensure_termination(TURNS_MAX)?;
    let code = module.to_bytes();
    replace(template, COMPONENT, |inner| {
        replace(inner, CORE_MODULE, |_| Ok(code))
    })
}

/// A component with the content of its first section of this id replaced.
fn replace(
    component: &[u8],
    id: u8,
    with: impl FnOnce(&[u8]) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let (mut replaced, mut rest) = (component[..8].to_vec(), &component[8..]);
    let mut with = Some(with);
    while let Some((&found, behind)) = rest.split_first() {
        let (length, behind) = read_length(behind).context("a section has no length")?;
        ensure!(length <= behind.len(), "a section is cut");
        let (content, next) = behind.split_at(length);
        replaced.push(found);
        match with.take_if(|_| found == id) {
            Some(with) => write_section(&mut replaced, &with(content)?),
            None => write_section(&mut replaced, content),
        }
        rest = next;
    }
    ensure!(with.is_none(), "there is no section {id}");
    Ok(replaced)
}

/// A number in LEB128.
fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((length, &bytes[at + 1..]));
        }
    }
    None
}

fn write_section(to: &mut Vec<u8>, content: &[u8]) {
    let mut length = content.len();
    while length >= 0x80 {
        to.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
    to.extend(content);
}
