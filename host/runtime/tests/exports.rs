//! What plugins export besides tools, and their news, against the components of `tests/guests`.
//!
//! It has a `main` of its own, because it is also the child that compiles: a component is never compiled in the host's process.

mod host;

use host::{Served, answer_form, finished, form_key, text_of};
use longshore_runtime::contract::{CompletionTarget, ReadOutcome, ResourceBody};
use longshore_runtime::{Answer, Failure, Limit, NewsKind, Step, Work};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    if let Some(code) = host::compile_if_asked() {
        return code;
    }
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads");
    threads.block_on(async {
        let served = Served::start().await;
        offers(&served);
        prompts(&served).await;
        resources(&served).await;
        rounds(&served).await;
        completions(&served).await;
        following(&served).await;
        cancelled(&served).await;
        misbehaviour(&served).await;
        changed_list(&served).await;
        told_once(&served).await;
        flood(&served).await;
    });
    ExitCode::SUCCESS
}

fn prompt(name: &str, arguments: &[(&str, &str)]) -> Work {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Work::Prompt {
        name: name.to_owned(),
        arguments: arguments.iter().map(owned).collect(),
    }
}

fn resource(uri: &str) -> Work {
    Work::Resource {
        uri: uri.to_owned(),
    }
}

fn tool(name: &str, arguments: &str) -> Work {
    Work::Tool {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn offers(served: &Served) {
    let fixtures = served.plugin("fixtures");
    let names: Vec<_> = fixtures.prompts.iter().map(|prompt| &prompt.name).collect();
    assert_eq!(names, ["greet", "ask_prompt", "ask_one", "fail_prompt"]);
    assert_eq!(fixtures.resources[0].uri, "fixture://plain");
    assert_eq!(fixtures.templates.len(), 2);
    assert!(fixtures.completes && !fixtures.tools.is_empty());
    let tools_only = served.plugin("a");
    assert!(!tools_only.completes && tools_only.prompts.is_empty());
    assert!(tools_only.resources.is_empty() && tools_only.templates.is_empty());
}

async fn prompts(served: &Served) {
    let work = prompt("greet", &[("name", "Ada"), ("times", "2")]);
    let Answer::Prompt(filled) = finished(served.run("fixtures", work))
        .await
        .expect("filled")
    else {
        panic!("a prompt was asked for");
    };
    assert_eq!(filled.messages.len(), 2);
    assert_eq!(text_of(&filled.messages[1].content), "Greet Ada.");

    let work = prompt("greet", &[("name", "Ada"), ("times", "many")]);
    raised(served.run("fixtures", work), -32602).await;
    raised(served.run("fixtures", prompt("fail_prompt", &[])), -32603).await;
    raised(served.run("fixtures", prompt("none", &[])), -32602).await;
    let missing = finished(served.run("a", prompt("greet", &[]))).await;
    assert!(
        matches!(missing, Err(Failure::Unavailable(_))),
        "{missing:?}"
    );
}

async fn raised(run: longshore_runtime::Run, code: i32) {
    match finished(run).await {
        Err(Failure::Raised { error, .. }) => assert_eq!(error.code, code, "{error:?}"),
        other => panic!("not raised: {other:?}"),
    }
}

/// What is read at this URI; `None`: not found.
async fn read(served: &Served, uri: &str) -> Option<Vec<ResourceBody>> {
    match finished(served.run("fixtures", resource(uri))).await {
        Ok(Answer::Resource(ReadOutcome::Found(contents))) => {
            Some(contents.into_iter().map(|content| content.body).collect())
        }
        Ok(Answer::Resource(ReadOutcome::NotFound)) => None,
        other => panic!("{uri}: {other:?}"),
    }
}

async fn read_text(served: &Served, uri: &str) -> String {
    match read(served, uri).await.as_deref() {
        Some([ResourceBody::Text(text)]) => text.clone(),
        other => panic!("{uri}: {other:?}"),
    }
}

async fn resources(served: &Served) {
    assert_eq!(read_text(served, "fixture://plain").await, "a plain text");
    assert_eq!(read_text(served, "fixture://seen/7").await, "seen at 7");
    let path = "fixture://file/a/b%20c";
    assert_eq!(read_text(served, path).await, "the file a/b c");
    let bytes = read(served, "fixture://bytes").await.expect("bytes");
    assert!(matches!(&bytes[..], [ResourceBody::Blob(blob)] if blob[..] == [0, 1, 254, 255]));
    let folder = read(served, "fixture://folder").await;
    assert_eq!(folder.map(|contents| contents.len()), Some(2));
    for missing in [
        "fixture://none",
        "fixture://seen/noon",
        "fixture://file/missing",
    ] {
        assert!(read(served, missing).await.is_none(), "{missing}");
    }
    raised(served.run("fixtures", resource("fixture://fail")), -32603).await;
    let said = read_text(served, "fixture://like-a-tool").await;
    assert!(said.contains("not of a tool"), "{said}");
}

/// Each question is met twice: by the run that asked it, and by one made from the record.
async fn rounds(served: &Served) {
    let call = served.call("fixtures", prompt("ask_prompt", &[]));
    let first = form_key(served.again("fixtures", &call, None)).await;
    assert_eq!(first.key, "name");
    let replayed = form_key(served.again("fixtures", &call, Some(first.record))).await;
    assert_eq!(replayed.key, "name");
    answer_form(&replayed.run, r#"{"name":"Ada"}"#);
    let second = form_key(replayed.run).await;
    assert_eq!(second.key, "name-2");
    let replayed = form_key(served.again("fixtures", &call, Some(second.record))).await;
    assert_eq!(replayed.key, "name-2");
    answer_form(&replayed.run, r#"{"name":"Bob"}"#);
    let Ok(Answer::Prompt(filled)) = finished(replayed.run).await else {
        panic!("a prompt was asked for");
    };
    assert_eq!(text_of(&filled.messages[0].content), "Greet Ada and Bob.");

    let asked = form_key(served.run("fixtures", resource("fixture://ask"))).await;
    answer_form(&asked.run, r#"{"name":"Eve"}"#);
    let read = finished(asked.run).await.expect("read");
    assert!(format!("{read:?}").contains("written for Eve"), "{read:?}");
}

async fn completions(served: &Served) {
    let work = Work::Completion {
        target: CompletionTarget::Prompt("greet".to_owned()),
        argument: "name".to_owned(),
        value: "A".to_owned(),
        known: vec![("times".to_owned(), "2".to_owned())],
    };
    let Ok(Answer::Completion(found)) = finished(served.run("fixtures", work)).await else {
        panic!("suggestions were asked for");
    };
    assert_eq!(found.values[7], "A7 2");
    assert_eq!(
        (found.values.len(), found.total, found.has_more),
        (100, Some(250), true)
    );
}

async fn following(served: &Served) {
    let follow = |uri: &str| Work::Subscribe {
        uri: uri.to_owned(),
    };
    for uri in ["fixture://plain", "fixture://seen/1"] {
        let done = finished(served.run("fixtures", follow(uri))).await;
        assert!(matches!(done, Ok(Answer::Done)), "{uri}: {done:?}");
    }
    raised(served.run("fixtures", follow("fixture://none")), -32602).await;
    let uri = "fixture://plain".to_owned();
    let done = finished(served.run("fixtures", Work::Unsubscribe { uri })).await;
    assert!(matches!(done, Ok(Answer::Done)), "{done:?}");
}

/// Who waits for an answer when the wish comes ends with an error of the SDK; that is no failure.
async fn cancelled(served: &Served) {
    let mut asked = form_key(served.run("fixtures", prompt("ask_prompt", &[]))).await;
    asked.run.cancel();
    let last = host::within(asked.run.step()).await;
    assert!(matches!(last, Step::Cancelled), "{last:?}");
}

async fn misbehaviour(served: &Served) {
    let failure = |work: Work| async {
        let step = finished(served.run("hostile", work)).await;
        step.expect_err("it should have failed")
    };
    let limit = |failure: Failure| match failure {
        Failure::Limit(exceeded) => exceeded.limit,
        other => panic!("no limit: {other:?}"),
    };
    for big in [
        resource("hostile://big"),
        resource("hostile://big-blob"),
        prompt("big", &[]),
    ] {
        assert_eq!(limit(failure(big).await), Limit::ResultBytes);
    }
    for endless in [resource("hostile://spin"), prompt("spin", &[])] {
        assert_eq!(limit(failure(endless).await), Limit::WallTime);
    }
    let trap = failure(resource("hostile://trap")).await;
    assert!(matches!(trap, Failure::Trap(_)), "{trap:?}");
    for broken in [resource("hostile://bad-meta"), prompt("bad", &[])] {
        let refused = failure(broken).await;
        assert!(
            matches!(&refused, Failure::NoResult { refused: Some(why) } if why.contains("meta")),
            "{refused:?}"
        );
    }
    // What is returned is copied out of the guest before its size is known, so the copy has a limit too.
    let mut call = served.call("hostile", resource("hostile://big"));
    call.limits.host_call_bytes = 1 << 20;
    let copied = finished(served.again("hostile", &call, None)).await;
    assert_eq!(limit(copied.expect_err("large")), Limit::HostCallBytes);
}

async fn changed_list(served: &Served) {
    let mut news = served.runtime.news();
    let before = served.plugin("fixtures");
    let told = finished(served.run("fixtures", tool("notify", r#"{"list":"resources"}"#))).await;
    told.expect("told");
    let heard = host::within(news.recv()).await.expect("news");
    assert_eq!(
        (heard.plugin.as_str(), heard.kind),
        ("fixtures", NewsKind::Resources)
    );
    let after = served.plugin("fixtures");
    assert_eq!(before.version, after.version);
    let last = |plugin: &longshore_runtime::Plugin| {
        plugin.resources.last().map(|resource| resource.uri.clone())
    };
    assert_ne!(last(&before), last(&after), "the list was not asked again");

    let arguments = r#"{"uri":"fixture://plain"}"#;
    let mut run = served.run("fixtures", tool("notify", arguments));
    assert!(matches!(run.step().await, Step::Finished { .. }));
    let heard = host::within(news.recv()).await.expect("news");
    let updated = NewsKind::ResourceUpdated("fixture://plain".to_owned());
    assert_eq!(heard.kind, updated);
}

/// A run that is made again says nothing that was said before.
async fn told_once(served: &Served) {
    let mut news = served.runtime.news();
    let call = served.call("fixtures", resource("fixture://tell-and-ask"));
    let first = form_key(served.again("fixtures", &call, None)).await;
    let heard = host::within(news.recv()).await.expect("news").kind;
    assert_eq!(heard, NewsKind::ResourceUpdated("fixture://before".into()));
    let again = form_key(served.again("fixtures", &call, Some(first.record))).await;
    answer_form(&again.run, r#"{"name":"Ada"}"#);
    finished(again.run).await.expect("read");
    let heard = host::within(news.recv()).await.expect("news").kind;
    assert_eq!(heard, NewsKind::ResourceUpdated("fixture://after".into()));
}

/// A flood reaches listeners as a trickle, and what was told first is not lost.
async fn flood(served: &Served) {
    let mut news = served.runtime.news();
    let run = served.run("hostile", tool("notify_flood", r#"{"n":20000}"#));
    finished(run).await.expect("notified");
    let (mut lists, mut updates) = (0, 0);
    // Longer than a round of the teller: when nothing comes for so long, all has been told.
    while let Ok(heard) = tokio::time::timeout(Duration::from_secs(1), news.recv()).await {
        match heard.expect("no listener lags").kind {
            NewsKind::Tools => lists += 1,
            NewsKind::ResourceUpdated(_) => updates += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!((1..=40).contains(&lists), "{lists} times the list");
    assert!((100..=1_000).contains(&updates), "{updates} updates");
}
