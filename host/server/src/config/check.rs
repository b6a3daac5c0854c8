//! Whether values make sense, each by its key.

use super::{Config, ConfigError};
use crate::catalogue::is_name;
use crate::http::gate;
use longshore_runtime::Limits;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// A year: more is a slip of the finger.
const TIME_MS_MAX: u64 = 366 * 24 * 3_600_000;

/// What the pool of instances reserves for each memory.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Guests at once: each takes address space for its memories and its stack.
const RUNS_MAX: u64 = 10_000;

/// What a table of the runtime's pool has room for (wasmtime's default).
const TABLE_ELEMENTS_MAX: u64 = 20_000;

/// Length of a prefix, in characters: half of a name.
const PREFIX_MAX: usize = 64;

/// Versions of a plugin in its history.
const HISTORY_MAX: u64 = 1_000;

const GIB: u64 = 1 << 30;

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    check_http(config)?;
    check_tasks(config)?;
    check_host(config)?;
    check_state_keys(&config.state_key_files)?;
    within(
        "history_versions",
        config.history_versions.into(),
        1..=HISTORY_MAX,
    )?;
    within(
        "compile_cache_bytes_max",
        config.compile_cache_bytes_max,
        1..=1_024 * GIB,
    )?;
    let sessions = &config.sessions;
    let sessions_max = u64::from(sessions.sessions_max);
    within("sessions.sessions_max", sessions_max, 1..=1_000_000)?;
    within(
        "sessions.sessions_per_client_max",
        sessions.sessions_per_client_max.into(),
        1..=1_000_000,
    )?;
    within("sessions.idle_ms", sessions.idle_ms, 1_000..=TIME_MS_MAX)?;
    let listening = &config.listening;
    within(
        "subscriptions.keep_alive_ms",
        listening.keep_alive_ms,
        1..=TIME_MS_MAX,
    )?;
    within("lists.page_size", config.lists.page_size as u64, 1..=1_000)?;
    within("lists.ttl_ms", config.lists.ttl_ms, 0..=TIME_MS_MAX)?;
    within("resources.ttl_ms", config.resources.ttl_ms, 0..=TIME_MS_MAX)?;
    check_limits("limits", &config.limits)?;
    for (name, plugin) in &config.plugins {
        check_limits(&format!("plugins.{name}.limits"), &plugin.limits)?;
        check_prefix(name, &plugin.prefix)?;
    }
    // A word that is no level would be taken for the name of a part, and everything of it be logged.
    let level = &config.log.level;
    let is_level = |text: &str| text.trim().parse::<LevelFilter>().is_ok();
    let is_directive = |text: &str| is_level(text.split_once('=').map_or(text, |(_, level)| level));
    if !level.split(',').all(is_directive) || level.parse::<Targets>().is_err() {
        let expected = "off, error, warn, info, debug or trace, or \"info,part=debug\"";
        return Err(wrong("log.level", level, expected));
    }
    Ok(())
}

fn check_prefix(plugin: &str, prefix: &str) -> Result<(), ConfigError> {
    if prefix.is_empty() || (prefix.len() <= PREFIX_MAX && is_name(prefix)) {
        return Ok(());
    }
    let expected = format!("at most {PREFIX_MAX} of A-Z a-z 0-9 _ . -, as \"math.\"");
    Err(wrong(
        &format!("plugins.{plugin}.prefix"),
        prefix,
        &expected,
    ))
}

fn check_http(config: &Config) -> Result<(), ConfigError> {
    let http = &config.http;
    within("http.body_bytes_max", http.body_bytes_max, 1_024..=GIB)?;
    within(
        "http.body_timeout_ms",
        http.body_timeout_ms,
        1..=TIME_MS_MAX,
    )?;
    within(
        "http.header_bytes_max",
        http.header_bytes_max.into(),
        8_192..=1 << 20,
    )?;
    within("http.headers_max", http.headers_max.into(), 16..=1_000)?;
    within(
        "http.header_timeout_ms",
        http.header_timeout_ms,
        1..=TIME_MS_MAX,
    )?;
    within(
        "http.write_timeout_ms",
        http.write_timeout_ms,
        1..=TIME_MS_MAX,
    )?;
    within(
        "http.connections_max",
        http.connections_max.into(),
        1..=1_000_000,
    )?;
    within("http.streams_max", http.streams_max.into(), 1..=10_000)?;
    within("http.drain_ms", http.drain_ms, 0..=TIME_MS_MAX)?;
    for host in &http.allowed_hosts {
        if !gate::is_host(host) {
            return Err(wrong(
                "http.allowed_hosts",
                host,
                "a host, or host:port, as example.com",
            ));
        }
    }
    for origin in &http.allowed_origins {
        if !gate::is_origin(origin) {
            let expected = "scheme://host or scheme://host:port, as https://example.com";
            return Err(wrong("http.allowed_origins", origin, expected));
        }
    }
    Ok(())
}

fn check_tasks(config: &Config) -> Result<(), ConfigError> {
    let tasks = &config.tasks;
    within("tasks.ttl_ms", tasks.ttl_ms, 1..=TIME_MS_MAX)?;
    within("tasks.keep_ms", tasks.keep_ms, 0..=TIME_MS_MAX)?;
    within(
        "tasks.poll_interval_ms",
        tasks.poll_interval_ms,
        1..=TIME_MS_MAX,
    )?;
    within(
        "tasks.first_poll_interval_ms",
        tasks.first_poll_interval_ms,
        1..=TIME_MS_MAX,
    )?;
    within(
        "tasks.inline_window_ms",
        tasks.inline_window_ms,
        0..=TIME_MS_MAX,
    )?;
    within("tasks.linger_ms", tasks.linger_ms, 0..=TIME_MS_MAX)?;
    within("tasks.grace_ms", tasks.grace_ms, 0..=TIME_MS_MAX)
}

fn check_host(config: &Config) -> Result<(), ConfigError> {
    let host = &config.host;
    within("limits.input_time_ms", host.input_time_ms, 1..=TIME_MS_MAX)?;
    within(
        "limits.concurrent_runs",
        host.concurrent_runs.into(),
        1..=RUNS_MAX,
    )?;
    within(
        "limits.queued_calls",
        host.queued_calls.into(),
        0..=1_000_000,
    )?;
    within("limits.component_bytes", host.component_bytes, 1..=GIB)?;
    within(
        "limits.compile_memory_bytes",
        host.compile_memory_bytes,
        64 << 20..=u64::MAX,
    )?;
    within("limits.compile_cpu_s", host.compile_cpu_s, 1..=86_400)
}

/// What they hold is looked at when they are read.
fn check_state_keys(files: &[PathBuf]) -> Result<(), ConfigError> {
    match files {
        [] | [_] => Ok(()),
        [now, former] if now != former => Ok(()),
        _ => {
            let expected = "one file, or two different ones: the key, and the one before it";
            Err(wrong("state_key_files", &format!("{files:?}"), expected))
        }
    }
}

fn check_limits(table: &str, limits: &Limits) -> Result<(), ConfigError> {
    let within = |key: &str, value: u64, range| within(&format!("{table}.{key}"), value, range);
    within("fuel", limits.fuel, 1..=u64::MAX)?;
    within("wall_time_ms", limits.wall_time_ms, 1..=TIME_MS_MAX)?;
    within(
        "memory_bytes",
        limits.memory_bytes,
        65_536..=MEMORY_BYTES_MAX,
    )?;
    within(
        "table_elements",
        limits.table_elements.into(),
        0..=TABLE_ELEMENTS_MAX,
    )?;
    within("result_bytes", limits.result_bytes, 1..=GIB)?;
    within("record_bytes", limits.record_bytes, 0..=16 << 20)?;
    within("host_call_bytes", limits.host_call_bytes, 1..=GIB)?;
    within("handles", limits.handles.into(), 1..=u64::from(u32::MAX))?;
    within("http_time_ms", limits.http_time_ms, 1..=TIME_MS_MAX)?;
    within("http_request_bytes", limits.http_request_bytes, 0..=GIB)?;
    within("http_response_bytes", limits.http_response_bytes, 1..=GIB)?;
    within("http_field_bytes", limits.http_field_bytes, 1_024..=1 << 20)?;
    within("schema_cpu_s", limits.schema_cpu_s, 1..=3_600)
}

fn within(key: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let expected = match (*range.start(), *range.end()) {
        (least, u64::MAX) => format!("at least {least}"),
        (least, most) => format!("from {least} to {most}"),
    };
    Err(wrong(key, &value.to_string(), &expected))
}

fn wrong(key: &str, value: &str, expected: &str) -> ConfigError {
    ConfigError::Value {
        key: key.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    }
}
