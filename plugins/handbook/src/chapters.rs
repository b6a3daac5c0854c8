//! The chapters, and the sections in them. It knows nothing of plugins.

/// A chapter of the handbook.
#[derive(Debug)]
pub(crate) struct Chapter {
    /// Its name in addresses.
    pub(crate) name: &'static str,
    /// Its text, in Markdown.
    pub(crate) text: &'static str,
}

pub(crate) const CHAPTERS: [Chapter; 3] = [
    Chapter {
        name: "on-call",
        text: include_str!("../chapters/on-call.md"),
    },
    Chapter {
        name: "releases",
        text: include_str!("../chapters/releases.md"),
    },
    Chapter {
        name: "reviews",
        text: include_str!("../chapters/reviews.md"),
    },
];

pub(crate) fn chapter(name: &str) -> Option<&'static Chapter> {
    CHAPTERS.iter().find(|chapter| chapter.name == name)
}

impl Chapter {
    pub(crate) fn title(&self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.trim_start_matches("# ")
    }

    /// The name of each section, with its text.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (String, &'static str)> + use<> {
        self.text.split("\n## ").skip(1).map(|section| {
            let (title, text) = section.split_once('\n').unwrap_or((section, ""));
            (title.to_lowercase().replace(' ', "-"), text.trim())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chapter_has_a_title_and_sections() {
        for chapter in &CHAPTERS {
            assert!(chapter.text.starts_with("# "), "{}", chapter.name);
            assert!(chapter.sections().count() >= 3, "{}", chapter.name);
            assert!(chapter.sections().all(|(_, text)| !text.is_empty()));
        }
    }

    #[test]
    fn sections_are_found_by_name() {
        let releases = chapter("releases").unwrap();
        assert_eq!(releases.title(), "Releases");
        let names: Vec<_> = releases.sections().map(|(name, _)| name).collect();
        assert_eq!(names, ["when", "how", "undoing"]);
    }
}
