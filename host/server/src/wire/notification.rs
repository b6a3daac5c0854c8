//! Notifications of a request, as the wire has them.

use super::object::Object;
use super::rpc;
use longshore_runtime::contract::LogLevel;
use longshore_runtime::{LogMessage, Progress};
use serde_json::value::RawValue;

/// `notifications/progress`, with the token as the client wrote it.
pub(crate) fn progress(token: &RawValue, progress: &Progress) -> String {
    let params = Object::new()
        .raw("progressToken", token.get())
        .value("progress", &progress.progress)
        .option("total", progress.total.as_ref())
        .option("message", progress.message.as_ref());
    rpc::notification("notifications/progress", &params.finish())
}

/// `notifications/message`.
pub(crate) fn log(message: &LogMessage) -> String {
    let params = Object::new()
        .value("level", &level_name(message.level))
        .option("logger", message.logger.as_ref())
        .raw("data", &message.data);
    rpc::notification("notifications/message", &params.finish())
}

fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Notice => "notice",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
        LogLevel::Critical => "critical",
        LogLevel::Alert => "alert",
        LogLevel::Emergency => "emergency",
    }
}
