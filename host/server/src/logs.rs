//! The log: on standard error, as text or JSON. Arguments, results and other bodies never go there.

use crate::config::{Config, LogFormat};
use std::io::IsTerminal as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Begin to log, by the configuration. Call it once.
pub(crate) fn init(config: &Config) {
    // The configuration was checked: the level parses.
    let filter: Targets = config.log.level.parse().unwrap_or_default();
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if config.dev {
        // For somebody who watches: what happened, and of which plugin.
        let is_terminal = std::io::stderr().is_terminal();
        let layer = layer.compact().without_time().with_target(false);
        let layer = layer.with_ansi(is_terminal);
        return registry.with(layer).init();
    }
    match config.log.format {
        LogFormat::Text => registry.with(layer.with_ansi(false)).init(),
        LogFormat::Json => registry.with(layer.json()).init(),
    }
}
