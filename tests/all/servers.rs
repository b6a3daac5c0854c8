//! The servers that tests share where their state does not matter, and runs of one test on servers that linger and that do not.

use longshore_tests::server::{CONFORMANCE, FIXTURES, Server, Shared};
use std::sync::OnceLock;

/// The grace period of all shared servers: short, so that the tests of cancellation are.
pub(crate) const GRACE_MS: u64 = 300;

fn start(slot: &'static OnceLock<Server>, tasks: &str) -> Shared {
    let config = format!("[tasks]\ngrace_ms = {GRACE_MS}\n{tasks}");
    let start = || Server::start(&[FIXTURES, CONFORMANCE], &config).ends_with_tests();
    Shared(slot.get_or_init(start))
}

/// With the fixtures and the tools of the official suite; waiting guests linger as by default.
pub(crate) fn shared() -> Shared {
    static SLOT: OnceLock<Server> = OnceLock::new();
    start(&SLOT, "")
}

/// The same, but no waiting guest stays in memory: every answer means a replay.
pub(crate) fn forgetful() -> Shared {
    static SLOT: OnceLock<Server> = OnceLock::new();
    start(&SLOT, "linger_ms = 0\n")
}

/// One that takes the address of a tap for its own.
pub(crate) fn tapped() -> Shared {
    static SLOT: OnceLock<Server> = OnceLock::new();
    let config = "[http]\nallowed_hosts = [\"127.0.0.1\"]\n";
    let start = || Server::start(&[FIXTURES, CONFORMANCE], config).ends_with_tests();
    Shared(SLOT.get_or_init(start))
}

/// A test on the server that lingers, and again on the one that does not.
macro_rules! with_and_without_lingering {
    ($($(#[$about:meta])* fn $name:ident($server:ident) $body:block)*) => {$(
        $(#[$about])*
        mod $name {
            #[allow(unused_imports, reason = "each test needs some of them")]
            use super::*;

            fn check($server: &longshore_tests::server::Server) $body

            #[test]
            fn lingering() {
                check(&crate::servers::shared());
            }

            #[test]
            fn replayed() {
                check(&crate::servers::forgetful());
            }
        }
    )*};
}
pub(crate) use with_and_without_lingering;
