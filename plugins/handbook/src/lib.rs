//! A handbook to read from and to ask about: chapters as resources, sections by a template, and a prompt that puts a chapter
//! before the model.

mod chapters;

use chapters::{CHAPTERS, Chapter, chapter};
use longshore_plugin::{
    Content, Message, Reply, Resource, Result, RpcError, Typed, ask, complete_prompt,
    complete_template, prompt, resource, template,
};
use schemars::JsonSchema;
use serde::Deserialize;

const MARKDOWN: &str = "text/markdown";
const SECTION: &str = "handbook://{chapter}/{section}";

fn address(chapter: &Chapter) -> String {
    format!("handbook://{}", chapter.name)
}

/// Every chapter.
fn all_chapters() -> impl Iterator<Item = Resource> {
    CHAPTERS.iter().map(|chapter| {
        resource(&address(chapter), chapter.name, || chapter.text)
            .title(chapter.title())
            .mime_type(MARKDOWN)
            .size(chapter.text.len() as u64)
    })
}

#[derive(Deserialize)]
struct Section {
    chapter: String,
    section: String,
}

/// `None`: there is no such section.
fn section(at: Section) -> Option<&'static str> {
    let mut sections = chapter(&at.chapter)?.sections();
    let (_, text) = sections.find(|(name, _)| *name == at.section)?;
    Some(text)
}

/// Applies a chapter of the handbook to a situation.
#[derive(Deserialize, JsonSchema)]
struct ApplyChapter {
    /// Which chapter: on-call, releases or reviews.
    chapter: String,
    /// What is going on. Without it the user is asked.
    situation: Option<String>,
}

/// What the user is asked for.
#[derive(Deserialize, JsonSchema)]
struct Situation {
    /// What is going on?
    situation: String,
}

fn apply_chapter(args: ApplyChapter) -> Result<Vec<Message>> {
    let Some(chapter) = chapter(&args.chapter) else {
        return Err(
            RpcError::invalid_params(format!("there is no chapter {}", args.chapter)).into(),
        );
    };
    let situation = match args.situation {
        Some(situation) => situation,
        None => match ask::<Situation>("What shall the chapter be applied to?")? {
            Reply::Accepted(answer) => answer.situation,
            Reply::Declined | Reply::Cancelled => {
                "Nothing in particular: sum the chapter up.".into()
            }
        },
    };
    Ok(vec![
        Message::user(Content::embedded_text(
            address(chapter),
            MARKDOWN,
            chapter.text,
        )),
        Message::user(format!(
            "What does our handbook say to do here? {situation}"
        )),
    ])
}

/// The chapters whose name begins with what was typed.
fn chapter_names(typed: &Typed) -> Vec<&'static str> {
    let names = CHAPTERS.iter().map(|chapter| chapter.name);
    names
        .filter(|name| name.starts_with(&typed.value))
        .collect()
}

/// The sections of the chapter that is known already, else of all.
fn section_names(typed: &Typed) -> Vec<String> {
    let meant = |chapter: &&Chapter| {
        typed
            .known("chapter")
            .is_none_or(|name| name == chapter.name)
    };
    let sections = CHAPTERS.iter().filter(meant).flat_map(Chapter::sections);
    let names = sections.map(|(name, _)| name);
    names
        .filter(|name| name.starts_with(&typed.value))
        .collect()
}

longshore_plugin::plugin! {
    prompts: [prompt("apply_chapter", apply_chapter).title("Apply a chapter")],
    resources: [all_chapters()],
    templates: [
        template(SECTION, "section", section)
            .description("One section of a chapter.").mime_type(MARKDOWN),
    ],
    completions: [
        complete_prompt("apply_chapter", "chapter", chapter_names),
        complete_template(SECTION, "chapter", chapter_names),
        complete_template(SECTION, "section", section_names),
    ],
}
