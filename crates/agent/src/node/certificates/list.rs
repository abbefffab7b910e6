//! The list that the proxy reads: which file is for which names.
//!
//! Before each file a comment says its digest. So the list is also a record of what was brought into the running proxy,
//! and what is new in it is what has to be brought there.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use corpus_domain::{CertificateId, CertifiedName};
use corpus_protocol::NodePlan;

const DIGEST: &str = "# sha256 ";

/// A certificate that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its file.
    pub file: String,
    /// SHA-256 of the file.
    pub digest: String,
    /// The names for which it is shown, with blanks between.
    pub names: String,
}

impl Entry {
    /// As the list says it, and as the running proxy tells it.
    pub fn line(&self) -> String {
        format!("{} {}", self.file, self.names)
    }
}

/// The certificates of the plan for which `digest` finds a file. A name that two are for is shown the one with the later
/// id, which was made later.
pub fn entries(plan: &NodePlan, folder: &Path, digest: impl Fn(CertificateId) -> Option<String>) -> Vec<Entry> {
    let digests: BTreeMap<CertificateId, String> =
        plan.certificates.iter().filter_map(|one| Some((one.id, digest(one.id)?))).collect();
    let mut shown: BTreeMap<&CertifiedName, CertificateId> = BTreeMap::new();
    for one in plan.certificates.iter().filter(|one| digests.contains_key(&one.id)) {
        for name in &one.names {
            let id = shown.entry(name).or_insert(one.id);
            *id = one.id.max(*id);
        }
    }
    let mut names: BTreeMap<CertificateId, Vec<&str>> = BTreeMap::new();
    for (name, id) in shown {
        names.entry(id).or_default().push(name.as_str());
    }
    let entry = |(id, digest)| {
        let names = names.get(&id)?.join(" ");
        Some(Entry { file: folder.join(file_name(id)).display().to_string(), digest, names })
    };
    digests.into_iter().filter_map(entry).collect()
}

/// The name of a certificate's file.
pub fn file_name(id: CertificateId) -> String {
    format!("{id}.pem")
}

/// The list. Its first file is shown for all other names, and to who names none.
pub fn text(default: &Path, entries: &[Entry]) -> String {
    entries.iter().fold(format!("{}\n", default.display()), |mut text, entry| {
        let _ = writeln!(text, "{DIGEST}{}\n{}", entry.digest, entry.line());
        text
    })
}

/// The entries of a list, without its first file.
pub fn read(text: &str) -> Vec<Entry> {
    let mut digest = None;
    let mut entries = Vec::new();
    for line in text.lines() {
        let told = line.strip_prefix(DIGEST);
        if let (Some(digest), Some((file, names))) = (digest.take(), line.split_once(' '))
            && told.is_none()
        {
            entries.push(Entry { file: file.to_owned(), digest, names: names.to_owned() });
        }
        digest = told.map(str::to_owned);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::super::plan::tests::{certificate, plan};
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let mut plan = plan();
        plan.certificates = vec![
            certificate(2, &["www.example.org", "*.b.example.org", "a.example.org"]),
            certificate(1, &["c.example.org", "a.example.org"]),
            certificate(3, &["d.example.org"]),
        ];
        let last = plan.certificates[2].id;
        let entries = entries(&plan, Path::new("/c"), |id| (id != last).then(|| format!("d{}", id.0.as_u128() % 10)));
        let told: Vec<(&str, &str)> = entries.iter().map(|one| (one.digest.as_str(), one.names.as_str())).collect();
        assert_eq!(told, [("d1", "c.example.org"), ("d2", "*.b.example.org a.example.org www.example.org")]);
        assert_eq!(entries[0].file, "/c/00000000-0000-7000-8000-000000000001.pem");
        assert_eq!(read(&text(Path::new("/default.pem"), &entries)), entries);
        for other in ["", "/default.pem\n", "# sha256 a\n# sha256 b\n", "# sha256 a\n", "/a b\n# sha256 x\n\n/b c\n"] {
            assert_eq!(read(other), [], "{other}");
        }
    }

    #[test]
    fn a_certificate_whose_names_are_all_another_s_is_not_listed() {
        let mut plan = plan();
        plan.certificates = vec![certificate(1, &["a.example.org"]), certificate(2, &["a.example.org"])];
        let entries = entries(&plan, Path::new("/c"), |_| Some("d".into()));
        assert_eq!(entries.len(), 1);
        assert!(entries[0].file.ends_with("2.pem"));
    }
}
