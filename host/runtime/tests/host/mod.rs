//! A runtime that serves some of the guests, and shorthands to run them.

use longshore_runtime::contract::{
    ClientFeatures, ContentBlock, ElicitAction, ElicitAnswer, InputAnswer,
};
use longshore_runtime::{
    Answer, Call, Compiler, Context, Failure, Limits, Patience, Pins, Plugin, PluginSettings,
    Record, Run, Runtime, Settings, Step, Work,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Everything that is waited for here comes within a fraction of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// By this word the program knows that it is the child.
const COMPILE: &str = "compile";

/// Compile and end, if this is the child.
pub(crate) fn compile_if_asked() -> Option<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [word, memory_bytes, cpu_s] if word == COMPILE => Some(longshore_runtime::child_main(
            memory_bytes.parse().expect("bytes"),
            cpu_s.parse().expect("seconds"),
        )),
        _ => None,
    }
}

/// Wait, but not for ever.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it did not come")
}

pub(crate) struct Served {
    pub(crate) runtime: Runtime,
    _folder: TempDir,
}

fn component(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target folder");
    let path = target.join("guests").join(name);
    assert!(
        path.exists(),
        "{} is missing; `cargo xtask plugins` builds it",
        path.display()
    );
    path
}

impl Served {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plugins_dir = folder.path().join("plugins");
        std::fs::create_dir(&plugins_dir).expect("a folder");
        for guest in ["fixtures/fixtures", "hostile/hostile", "versions/a"] {
            let from = component(&format!("{guest}.wasm"));
            let to = plugins_dir.join(from.file_name().expect("a name"));
            std::fs::copy(&from, to).expect("a copy");
        }
        // One second, for those that would take for ever.
        let hostile = PluginSettings {
            limits: Limits {
                wall_time_ms: 1_000,
                ..Limits::default()
            },
            ..PluginSettings::default()
        };
        let runtime = Runtime::new(Settings {
            plugins_dir,
            components_dir: folder.path().join("components"),
            compile_cache_dir: Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile-cache"),
            compile_cache_bytes: 1 << 30,
            compiler: Compiler {
                program: std::env::current_exe().expect("a program"),
                args: vec![COMPILE.into()],
                environment: Vec::new(),
                memory_bytes: 2 << 30,
                cpu_s: 120,
            },
            concurrent_runs: 10,
            queued_calls: 10,
            component_bytes_max: 64 << 20,
            plugin: PluginSettings::default(),
            plugins: HashMap::from([("hostile".to_owned(), hostile)]),
            check_question: |_| Ok(()),
            grace: Duration::from_millis(200),
            tells_usage: false,
            pins: Pins::default(),
            history_versions: 10,
            settle: Duration::from_millis(80),
        })
        .expect("a runtime");
        let mut changes = runtime.changes();
        runtime.serve_directory();
        while !runtime.snapshot().settled {
            within(changes.changed()).await.expect("a snapshot");
        }
        let refused = &runtime.snapshot().refused;
        assert!(refused.is_empty(), "{refused:?}");
        Self {
            runtime,
            _folder: folder,
        }
    }

    pub(crate) fn plugin(&self, name: &str) -> Arc<Plugin> {
        self.runtime.snapshot().plugins[name].clone()
    }

    pub(crate) fn call(&self, plugin: &str, work: Work) -> Call {
        let context = Context {
            features: ClientFeatures::all(),
            log_level: None,
            trace: Vec::new(),
        };
        Call::begin(work, context, self.plugin(plugin).terms()).expect("a seed")
    }

    pub(crate) fn run(&self, plugin: &str, work: Work) -> Run {
        self.again(plugin, &self.call(plugin, work), None)
    }

    pub(crate) fn again(&self, plugin: &str, call: &Call, record: Option<Record>) -> Run {
        let plugin = self.plugin(plugin);
        self.runtime
            .run(&plugin, call.clone(), record, Patience::Queue)
    }
}

/// The end of a run that asks nothing more.
pub(crate) async fn finished(mut run: Run) -> Result<Answer, Failure> {
    loop {
        match within(run.step()).await {
            Step::Finished { answer, .. } => return Ok(*answer),
            Step::Failed(failure) => return Err(failure),
            Step::Progress(_) | Step::Log(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A run that waits for the answer to one form.
pub(crate) struct Asked {
    pub(crate) key: String,
    pub(crate) record: Record,
    pub(crate) run: Run,
}

pub(crate) async fn form_key(mut run: Run) -> Asked {
    match within(run.step()).await {
        Step::NeedsInput {
            questions,
            record: Some(record),
        } => Asked {
            key: questions[0].key.clone(),
            record,
            run,
        },
        other => panic!("nothing was asked: {other:?}"),
    }
}

pub(crate) fn answer_form(run: &Run, content: &str) {
    run.answer(vec![InputAnswer::Elicited(ElicitAnswer {
        action: ElicitAction::Accept,
        content: Some(content.to_owned()),
    })]);
}

pub(crate) fn text_of(content: &ContentBlock) -> &str {
    match content {
        ContentBlock::Text(text) => &text.text,
        other => panic!("no text: {other:?}"),
    }
}
