//! Files of a guest, as a person names them.

use crate::plain::is_harmful;
use crate::text::{text_type, word_enum};

text_type! {
    /// Where a file of a guest is: names from the root on. It leads nowhere else, since `.` and `..` are no names.
    FilePath, "path", "a path from the root such as /etc/hosts, without . and .., on one line, 4096 characters at most",
    pattern: crate::schema::patterns::file_path(), max: 4096, example: "/etc/hosts",
    |given| {
        let below = given.strip_prefix('/')?;
        let names = below.strip_suffix('/').unwrap_or(below);
        let leads = below.is_empty() || names.split('/').all(|name| !matches!(name, "" | "." | ".."));
        (leads && !names.contains(char::is_control)).then(|| format!("/{names}"))
    }
}

impl FilePath {
    /// The root.
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// The names that lead there, the root's none.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// What lies there under this name; none where that is no name of a path, or one that is not what it looks like, or
    /// ends in a space, which a form takes away.
    pub fn join(&self, name: &str) -> Option<Self> {
        let as_seen = !name.contains(|c: char| c == '/' || is_harmful(c)) && !name.ends_with(char::is_whitespace);
        let path = format!("{}/{name}", self.0.trim_end_matches('/'));
        path.parse().ok().filter(|_| as_seen && !name.is_empty())
    }

    /// This and all that it lies in, the root first: each with its name.
    pub fn steps(&self) -> impl Iterator<Item = (Self, &str)> {
        let mut at = String::new();
        self.names().map(move |name| {
            at.push('/');
            at.push_str(name);
            (Self(at.clone()), name)
        })
    }
}

word_enum! {
    /// What a file of a guest is.
    FileKind, "kind of file", {
        /// A folder.
        Folder = "folder",
        /// A regular file.
        File = "file",
        /// A symbolic link.
        Link = "link",
        /// Anything else: a pipe.
        Other = "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<FilePath> {
        text.parse().ok()
    }

    #[test]
    fn a_path_leads_down_and_nowhere_else() {
        for (given, read) in [
            ("/", "/"),
            ("/etc", "/etc"),
            ("/etc/", "/etc"),
            ("/etc/a b/\u{e4}...", "/etc/a b/\u{e4}..."),
            ("/..a/.b/...", "/..a/.b/..."),
            ("/ a/b \u{a0}c ", "/ a/b \u{a0}c "),
        ] {
            assert_eq!(path(given).map(String::from).as_deref(), Some(read), "{given:?}");
        }
        for wrong in [
            "",
            "etc",
            "etc/",
            "//",
            "/etc//x",
            "/.",
            "/..",
            "/../etc",
            "/etc/..",
            "/etc/../x",
            "/etc/./x",
            "/a\nb",
            "/a\0b",
            "/a\tb",
            "/a\u{1b}[31m",
            "/a\u{9b}b",
            "\\etc",
            " /etc",
        ] {
            assert_eq!(path(wrong), None, "{wrong:?}");
        }
        assert!(path(&format!("/{}", "x".repeat(4095))).is_some() && path(&format!("/{}", "x".repeat(4096))).is_none());
    }

    #[test]
    fn a_path_is_made_of_names() {
        let etc = path("/etc").unwrap();
        assert_eq!(FilePath::root().join("etc"), Some(etc.clone()));
        assert_eq!(etc.join("a b").unwrap().as_str(), "/etc/a b");
        for wrong in ["", ".", "..", "a/b", "a/", "/", "/a", "a\n", "a ", "a\u{202e}b"] {
            assert_eq!(etc.join(wrong), None, "{wrong:?}");
        }
        let deep = path("/a/b/c").unwrap();
        assert_eq!(deep.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        let steps: Vec<_> = deep.steps().map(|(at, name)| (String::from(at), name.to_owned())).collect();
        assert_eq!(steps, [("/a", "a"), ("/a/b", "b"), ("/a/b/c", "c")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(FilePath::root().steps().count(), 0);
    }
}
