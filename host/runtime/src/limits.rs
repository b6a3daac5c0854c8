//! What a run may use. Each limit has a unit, a default and a stable name.

use serde::{Deserialize, Serialize};

/// The limits of one run. Stored with a call, so that a replay meets the same ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Work of the guest, in units of wasmtime's fuel: about 6 to 10 thousand million make a second of one core.
    pub fuel: u64,
    /// Time that a run may take, waits for input not counted, in milliseconds.
    pub wall_time_ms: u64,
    /// Linear memory of all modules of the guest together, in bytes. A Rust guest needs about 1.2 MiB to start.
    pub memory_bytes: u64,
    /// Elements of each table. Python guests need 5,674 and JavaScript ones 7,692 to start.
    pub table_elements: u32,
    /// Size of a result: text and decoded bytes of all its parts.
    pub result_bytes: u64,
    /// Size of the record of a call. A fuller one pins the call: its guest stays in memory while it waits.
    pub record_bytes: u64,
    /// Log messages, standard output and standard error together, in bytes. What is more is dropped and counted.
    pub log_bytes: u64,
    /// Log messages and lines of output together.
    pub log_lines: u64,
    /// Rounds of questions in one call.
    pub questions: u32,
    /// Data that one host call may copy out of the guest, in bytes. It bounds what the host holds on the guest's behalf.
    pub host_call_bytes: u64,
    /// Handles to host resources that a guest may hold.
    pub handles: u32,
    /// Random bytes that one call may draw at once.
    pub random_bytes: u64,
    /// Progress reports a second; those that come faster are dropped.
    pub progress_per_second: u32,
    /// What one run may write into granted folders, in bytes.
    pub written_bytes: u64,
    /// HTTP requests in one run.
    pub http_requests: u32,
    /// Time of one request, from the look-up of its host to the end of its response, in milliseconds.
    pub http_time_ms: u64,
    /// Body of one request, in bytes.
    pub http_request_bytes: u64,
    /// Body of one response, in bytes.
    pub http_response_bytes: u64,
    /// Fields of one request or response as the host keeps them, in bytes: names, values, and some 100 for each.
    pub http_field_bytes: u64,
    /// Processor time of one check that is made in a process of its own, of arguments or a result against a schema of the
    /// plugin, in seconds.
    pub schema_cpu_s: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Two to three minutes of one core: long for a tool, short for a stranger's endless loop.
            fuel: 1_000_000_000_000,
            wall_time_ms: 30 * 60 * 1_000,
            memory_bytes: 256 << 20,
            table_elements: 20_000,
            result_bytes: 4 << 20,
            record_bytes: 256 << 10,
            log_bytes: 256 << 10,
            log_lines: 1_000,
            questions: 64,
            host_call_bytes: 16 << 20,
            handles: 1_000,
            random_bytes: 1 << 20,
            progress_per_second: 20,
            written_bytes: 256 << 20,
            http_requests: 100,
            http_time_ms: 30_000,
            http_request_bytes: 4 << 20,
            http_response_bytes: 16 << 20,
            // Common servers take 8 KiB of fields.
            http_field_bytes: 16 << 10,
            // A schema that a person wrote takes milliseconds.
            schema_cpu_s: 1,
        }
    }
}

/// The name of a limit, as it stands in messages, in `data.limit` and in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Limit {
    /// [`Limits::fuel`].
    Fuel,
    /// [`Limits::wall_time_ms`].
    WallTime,
    /// [`Limits::memory_bytes`].
    Memory,
    /// [`Limits::table_elements`].
    TableElements,
    /// [`Limits::result_bytes`].
    ResultBytes,
    /// [`Limits::questions`].
    Questions,
    /// [`Limits::host_call_bytes`].
    HostCallBytes,
    /// [`Limits::handles`].
    Handles,
    /// [`Limits::random_bytes`].
    RandomBytes,
    /// [`Limits::written_bytes`].
    WrittenBytes,
    /// [`Limits::http_requests`].
    HttpRequests,
    /// [`Limits::http_time_ms`].
    HttpTime,
    /// [`Limits::http_request_bytes`].
    HttpRequestBytes,
    /// [`Limits::http_response_bytes`].
    HttpResponseBytes,
    /// [`Limits::http_field_bytes`].
    HttpFieldBytes,
    /// [`Limits::schema_cpu_s`].
    SchemaCpu,
    /// The memory of such a process, the same for all: 512 MiB.
    SchemaMemory,
    /// The stack of the guest, the same for all: 512 KiB.
    Stack,
}

impl Limit {
    /// Whether it is the same for all and cannot be set.
    pub fn is_fixed(self) -> bool {
        matches!(self, Self::Stack | Self::SchemaMemory)
    }

    /// Whether the guest is told by an error, so that what it says after it is a consequence.
    pub(crate) fn is_told(self) -> bool {
        matches!(
            self,
            Self::ResultBytes
                | Self::Questions
                | Self::WrittenBytes
                | Self::HttpRequests
                | Self::HttpTime
                | Self::HttpRequestBytes
                | Self::HttpResponseBytes
        )
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::WallTime => "wall_time_ms",
            Self::Memory => "memory_bytes",
            Self::TableElements => "table_elements",
            Self::ResultBytes => "result_bytes",
            Self::Questions => "questions",
            Self::HostCallBytes => "host_call_bytes",
            Self::Handles => "handles",
            Self::RandomBytes => "random_bytes",
            Self::WrittenBytes => "written_bytes",
            Self::HttpRequests => "http_requests",
            Self::HttpTime => "http_time_ms",
            Self::HttpRequestBytes => "http_request_bytes",
            Self::HttpResponseBytes => "http_response_bytes",
            Self::HttpFieldBytes => "http_field_bytes",
            Self::SchemaCpu => "schema_cpu_s",
            Self::SchemaMemory => "schema_memory_bytes",
            Self::Stack => "stack_bytes",
        }
    }
}

/// Address space of a process that checks a value against a schema, in bytes: the program, a stack, and room for both texts.
const SCHEMA_MEMORY_BYTES: u64 = 512 << 20;

/// Stack of a guest, in bytes: wasmtime's own default. What is left of a fiber's 2 MiB is for host functions.
pub(crate) const STACK_BYTES: u64 = 512 << 10;

impl Limits {
    /// The value of one limit.
    pub fn value(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Fuel => self.fuel,
            Limit::WallTime => self.wall_time_ms,
            Limit::Memory => self.memory_bytes,
            Limit::TableElements => self.table_elements.into(),
            Limit::ResultBytes => self.result_bytes,
            Limit::Questions => self.questions.into(),
            Limit::HostCallBytes => self.host_call_bytes,
            Limit::Handles => self.handles.into(),
            Limit::RandomBytes => self.random_bytes,
            Limit::WrittenBytes => self.written_bytes,
            Limit::HttpRequests => self.http_requests.into(),
            Limit::HttpTime => self.http_time_ms,
            Limit::HttpRequestBytes => self.http_request_bytes,
            Limit::HttpResponseBytes => self.http_response_bytes,
            Limit::HttpFieldBytes => self.http_field_bytes,
            Limit::SchemaCpu => self.schema_cpu_s,
            Limit::SchemaMemory => SCHEMA_MEMORY_BYTES,
            Limit::Stack => STACK_BYTES,
        }
    }
}
