//! What a store on a disk must do, with each of its databases.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod archive;
mod fire;
mod raw;
mod store;

/// Each of these, which take a `StoreEngine`, as a test of each engine.
macro_rules! on_each_engine {
    ($($test:ident),+ $(,)?) => {
        mod redb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(longshore_store::StoreEngine::Redb).await;
            })+
        }
        mod sled {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(longshore_store::StoreEngine::Sled).await;
            })+
        }
    };
}
pub(crate) use on_each_engine;
