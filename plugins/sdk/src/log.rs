//! Messages for the operator's log, and for the client if it asked for them. `data` is a text or anything else that can be JSON.

use crate::LogLevel;
use crate::contract::longshore::plugin::log as host;
use serde::Serialize;

/// Writes one message. `logger` names the part of the plugin that speaks.
pub fn write(level: LogLevel, logger: Option<&str>, data: impl Serialize) {
    // A message must never be the reason that a tool fails.
    let json = serde_json::to_string(&data)
        .unwrap_or_else(|error| serde_json::Value::from(error.to_string()).to_string());
    host::log(level, logger, &json);
}

macro_rules! levels {
    ($($(#[$doc:meta])* $name:ident = $level:ident;)+) => {
        $($(#[$doc])*
        pub fn $name(data: impl Serialize) {
            write(LogLevel::$level, None, data);
        })+
    };
}

levels! {
    /// For whoever looks for a fault.
    debug = Debug;
    /// What is going on.
    info = Info;
    /// Normal, but worth to know.
    notice = Notice;
    /// Something is not as it should be; the work goes on.
    warning = Warning;
    /// Something failed.
    error = Error;
    /// A part does not work.
    critical = Critical;
    /// Somebody has to act at once.
    alert = Alert;
    /// Nothing works.
    emergency = Emergency;
}
