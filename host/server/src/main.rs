//! The program; all of it is in the library.

use std::process::ExitCode;

/// A call makes hundreds of small allocations, and gives many of them back on another thread: with the system's allocator that
/// took a quarter of a call's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    longshore::run()
}
