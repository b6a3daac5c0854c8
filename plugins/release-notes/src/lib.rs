//! A tool that turns commit messages into release notes, and has a person decide what the release is called.

mod commit;
mod notes;
mod version;

use commit::Commit;
use longshore_plugin::{Error, Reply, Result, confirm, form, progress, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use version::{Bump, Version};

/// Writes release notes in Markdown from commit messages (conventional ones: "feat: ...", "fix(api)!: ..."). The user is asked
/// which version it is and may add a sentence of introduction; nothing is published.
#[derive(Deserialize, JsonSchema)]
struct ReleaseNotes {
    /// The name of the project.
    project: String,
    /// The version of the last release, as in "1.4.2".
    last_version: String,
    /// The messages of the commits since then. Only the first line and a "BREAKING CHANGE:" line count.
    #[schemars(length(min = 1, max = 5000))]
    commits: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Release {
    /// How much the version grows
    #[schemars(title = "Version")]
    bump: Bump,
    /// A sentence at the top of the notes
    #[schemars(title = "Introduction", length(max = 500))]
    introduction: Option<String>,
    /// Whether to list chores, tests and the like too
    #[schemars(title = "Internal changes")]
    #[serde(default)]
    internal: bool,
}

fn release_notes(args: ReleaseNotes) -> Result<String> {
    let last: Version = args.last_version.parse()?;
    let commits: Vec<Commit> = args
        .commits
        .iter()
        .map(|text| Commit::parse(text))
        .collect();
    let breaking = commits.iter().filter(|commit| commit.breaking).count();
    let proposed = Bump::for_commits(&commits);
    progress(
        1.0,
        3.0,
        &format!(
            "{} commits read, {breaking} of them breaking",
            commits.len()
        ),
    );

    let question = format!(
        "{} has {} since {last}, {breaking} of them breaking. They suggest {}. Which version is it?",
        args.project,
        changes(commits.len()),
        last.bumped(proposed),
    );
    let release = match form::<Release>(&question).ask()? {
        Reply::Accepted(release) => release,
        Reply::Declined => return Err(Error::msg("There is no release: the user declined.")),
        Reply::Cancelled => {
            return Err(Error::msg("There is no release: the user did not answer."));
        }
    };
    let version = last.bumped(release.bump);
    progress(2.0, 3.0, &format!("the release is {version}"));

    if breaking > 0 && release.bump < proposed {
        let warning = format!(
            "{version} would break users who expect none of that from a {} release. Go on?",
            release.bump
        );
        if !confirm(&warning)? {
            return Err(Error::msg(format!(
                "There is no release: {version} would break users."
            )));
        }
    }
    let introduction = release.introduction.as_deref().unwrap_or_default().trim();
    Ok(notes::markdown(
        &args.project,
        version,
        introduction,
        &commits,
        release.internal,
    ))
}

fn changes(count: usize) -> String {
    if count == 1 {
        "1 change".into()
    } else {
        format!("{count} changes")
    }
}

longshore_plugin::plugin! {
    tools: [tool("release_notes", release_notes).title("Write release notes").read_only()]
}
