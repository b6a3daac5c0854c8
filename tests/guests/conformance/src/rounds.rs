//! Questions that a plain call asks, each a round of its own on the 2026-07-28 wire.

use longshore_plugin::{
    ClientFeatures, Reply, Result, ask_all, client_features, form, roots, sample,
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Name {
    /// Your name
    pub(crate) name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    /// Your favourite colour
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Agreement {
    /// Whether to go on
    ok: bool,
}

pub(crate) fn elicitation() -> Result<String> {
    Ok(
        match form::<Name>("What is your name?")
            .named("user_name")
            .ask()?
        {
            Reply::Accepted(user) => format!("Hello, {}!", user.name),
            Reply::Declined | Reply::Cancelled => "Hello, whoever you are!".into(),
        },
    )
}

pub(crate) fn sampling() -> Result<String> {
    let question = sample("What is the capital of France?").named("capital_question");
    Ok(question.max_tokens(100).ask()?.text())
}

pub(crate) fn list_roots() -> Result<String> {
    let roots = roots().named("client_roots").ask()?;
    let uris: Vec<_> = roots.into_iter().map(|root| root.uri).collect();
    Ok(format!("Client roots: {}", uris.join(", ")))
}

pub(crate) fn request_state() -> Result<&'static str> {
    let agreed = agreement("Please confirm to continue.")?;
    Ok(if agreed { "state-ok" } else { "state-refused" })
}

pub(crate) fn tampered_state() -> Result<&'static str> {
    let agreed = agreement("Please confirm the operation.")?;
    Ok(if agreed {
        "integrity-ok"
    } else {
        "integrity-refused"
    })
}

fn agreement(message: &str) -> Result<bool> {
    let reply = form::<Agreement>(message).named("confirm").ask()?;
    Ok(reply.accepted().is_some_and(|agreement| agreement.ok))
}

pub(crate) fn multiple_inputs() -> Result<String> {
    let (user, greeting, roots) = ask_all((
        form::<Name>("What is your name?").named("user_name"),
        sample("Generate a greeting.")
            .named("greeting")
            .max_tokens(50),
        roots().named("client_roots"),
    ))?;
    let name = user.accepted().map_or("stranger".into(), |user| user.name);
    Ok(format!(
        "{} ({name}, {} roots)",
        greeting.text(),
        roots.len()
    ))
}

pub(crate) fn multi_round() -> Result<String> {
    let name = form::<Name>("Step 1: What is your name?")
        .named("step1")
        .ask()?;
    let Some(Name { name }) = name.accepted() else {
        return Ok("Stopped at step 1.".into());
    };
    let color = form::<Color>("Step 2: What is your favourite colour?")
        .named("step2")
        .ask()?;
    let Some(Color { color }) = color.accepted() else {
        return Ok("Stopped at step 2.".into());
    };
    Ok(format!("{name} likes {color}."))
}

pub(crate) fn capabilities() -> Result<String> {
    let features = client_features();
    let mut said = Vec::new();
    if features.contains(ClientFeatures::ELICITATION_FORM) {
        let user = form::<Name>("What is your name?")
            .named("user_name")
            .ask()?;
        said.push(user.accepted().map_or("no name".into(), |user| user.name));
    }
    if features.contains(ClientFeatures::SAMPLING) {
        let answer = sample("What is the capital of France?").named("capital_question");
        said.push(answer.max_tokens(100).ask()?.text());
    }
    if features.contains(ClientFeatures::ROOTS) {
        said.push(format!(
            "{} roots",
            roots().named("client_roots").ask()?.len()
        ));
    }
    Ok(format!("Learned from the client: [{}]", said.join(", ")))
}
